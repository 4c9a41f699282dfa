etstream bundle model.pte --cases cases.json -o out.bpte >/dev/null
try etstream inspect model.pte
try etstream inspect out.bpte
try etstream inspect out.bpte --json
try etstream inspect cases.json
try etstream inspect model.pte --duplicates | tail -2
