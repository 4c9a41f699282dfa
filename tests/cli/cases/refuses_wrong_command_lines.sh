try etstream 2>&1 | grep -v '^$'  # some releases of CLI11 end with an empty line
# Names of subcommands and options are mistyped.
try etstream bundel
try etstream verfy model.pte
try etstream xyzzy
try etstream model.pte
try etstream fat
try etstream help nosuch
try etstream bundle model.pte --cases cases.json -o out.bpte --fast
try etstream bundle model.pte --case cases.json -o out.bpte
try etstream inspect model.pte --jsn
try etstream bundle model.pte --cases cases.json -o out.bpte -x
try etstream bundle model.pte --cases cases.json -o out.bpte -
try etstream --verbose verify model.pte
try etstream --verbose bundle model.pte
# Options are missing, and positionals have no place.
try etstream bundle
try etstream bundle model.pte -o out.bpte
try etstream bundle model.pte --cases cases.json
try etstream bundle model.pte cases.json -o out.bpte
try etstream bundle model.pte --cases cases.json out.bpte
try etstream bundle model.pte cases.json --cases cases.json -o out.bpte
try etstream convert in.bpte out.bpte --to segmented
try etstream ptd model.pte out.ptd
try etstream pte model.pte weights.ptd -o out
try etstream bundle model.pte --cases
try etstream bundle model.pte --cases cases.json --cases more.json -o out.bpte
try etstream share model.pte
try etstream profile --compare a.json
try etstream extract model.pte
try etstream extract model.pte -o out
# Options exclude each other, and values are wrong.
try etstream bundle model.pte --cases cases.json -o - --json
try etstream inspect model.pte --graph forward --format json
try etstream inspect model.pte --json --html page.html
try etstream bundle model.pte --cases cases.json -o out.bpte --program-alignment many
try etstream bundle model.pte --cases cases.json -o out.bpte --to bp8
try etstream bundle model.pte --cases cases.json -o out.bpte --to 'bp08; '
try etstream extract model.pte segments/0
try etstream extract model.pte "" -o out
try etstream verify model.pte --run --atol 1x
try etstream profile --fail-above 1G@ -- true
# A variable of a shell that is not set gives no path.
try etstream pack model.pte --base ""
try etstream pack model.pte -o ""
try etstream pte model.pte -o ""
try etstream pte model.pte -o out --constants-to ""
try etstream ptd model.pte -o out.ptd --map ""
try etstream explain model.pte --by ""
try etstream inspect model.pte --names ""
try etstream fat a=model.pte -o ""
# A command to run does not come after --.
try etstream run
try etstream run --
try etstream run echo without the mark
try etstream run --limit 4G python3 -c 'print("it")'
try etstream run --lmit 4G python3 export.py
try etstream run --limt 4G -- true
try etstream run --lmit 4G python3 -- true
try etstream run echo '' "it's"
try etstream profile python3 export.py
try etstream run --limit 4 G -- python3 export.py
try etstream run --limit '4 G' python3 -- export.py
# Options that would do nothing.
try etstream bundle model.pte --cases cases.json --no-hash -o out.bpte
try etstream bundle model.pte --cases cases.json --to segmented --as-of 1.0 -o out.bpte
try etstream ptd model.pte --to safetensors --segment-alignment 16 -o out
try etstream ptd model.pte --to pth --no-dedup -o out
# Files are swapped, or given in the place of others.
try etstream bundle cases.json --cases model.pte -o out.bpte
try etstream bundle cases.json model.pte -o out.bpte
try etstream bundle cases.json --cases cases.json -o out.bpte
try etstream verify cases.json
try etstream convert cases.json --to segmented -o out.bpte
ls *.bpte *.ptd out
