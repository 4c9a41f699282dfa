etstream bundle model.pte --cases cases.json -o out.bpte >/dev/null
etstream bundle model.pte --cases cases.json -o aligned.bpte --program-alignment 128 >/dev/null
try etstream verify model.pte
try etstream verify out.bpte
try etstream verify aligned.bpte --json
try etstream verify cases.json
try etstream verify missing.bpte
try etstream verify .
mkfifo fifo
try etstream verify fifo
: >empty
try etstream verify empty
head -c 20000 out.bpte >short.bpte
try etstream verify short.bpte
# The size of a vtable.
cp aligned.bpte damaged.bpte
printf '\001' | dd of=damaged.bpte bs=1 seek=98 conv=notrunc status=none
try etstream verify damaged.bpte
try etstream inspect damaged.bpte
