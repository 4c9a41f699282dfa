# --max-memory and --max-disk are held against the plan before anything is written, of all outputs together. Only
# the disk's figures are the same on every machine.
try etstream bundle model.pte --cases cases.json -o out.bpte --max-disk 25K
etstream bundle model.pte --cases cases.json -o out.bpte --max-memory 1K 2>&1 | sed "s/ [0-9].*/ .../"
ls out.bpte
try etstream bundle model.pte --cases cases.json -o out.bpte --max-disk 26K --max-memory 1G --json
try etstream bundle model.pte --cases cases.json -o /dev/null --max-disk 0
try etstream bundle model.pte --cases cases.json --dry-run --max-disk 100
try etstream convert out.bpte --to segmented -o converted.bpte --max-disk 100
try etstream pte model.pte -o program.pte --constants-to weights.ptd --max-disk 22K
try etstream ptd model.pte -o weights.ptd --split-max-size 1K --max-disk 100
try etstream ptd model.pte -o weights.ptd --split-max-size 1K --max-disk 100 --dry-run
try etstream fat a=model.pte -o model.fat --max-disk 100
try etstream fat a=model.pte -o model.fat --max-disk 1M
try etstream extract model.fat a -o a.pte --max-disk 100
try etstream extract out.bpte program -o p.pte --max-disk 100
try etstream extract out.bpte program -o p.pte --cases cases --max-disk 100
try etstream extract out.bpte --cases cases --max-disk 100
try etstream bundle model.pte --cases cases.json -o out.bpte --max-disk many
ls *.bpte *.ptd *.fat *.pte

# A name that could not be read is not written.
name=$(head -c 1048577 /dev/zero | tr '\0' n)
header="{\"$name\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
length=$(printf '\\x%02x' $((${#header} & 255)) $((${#header} >> 8 & 255)) $((${#header} >> 16)))
printf "$length\0\0\0\0\0%sx" "$header" >long.safetensors
try etstream verify long.safetensors
try etstream ptd long.safetensors -o long.ptd
try etstream ptd long.safetensors --split-max-size 1K -o long.ptd
ls long.ptd
