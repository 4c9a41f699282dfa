try etstream 2>&1 | grep -v '^$'  # some releases of CLI11 end with an empty line
try etstream bundel
try etstream bundle
try etstream bundle model.pte -o out.bpte
try etstream bundle model.pte --cases cases.json
try etstream bundle model.pte --cases cases.json -o - --json
try etstream bundle model.pte --cases cases.json -o out.bpte --program-alignment many
try etstream bundle model.pte --cases cases.json -o out.bpte --fast
try etstream run
try etstream run echo without the mark
try etstream run --limit much -- echo
