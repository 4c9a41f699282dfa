cp model.pte large.pte
truncate -s 3G large.pte
try etstream bundle large.pte --cases cases.json -o out.bpte
ls -A | grep -v npy
