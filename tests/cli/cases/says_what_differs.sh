etstream pte model.pte -o aligned.pte --segment-alignment 4096 >/dev/null
try etstream diff model.pte model.pte
try etstream diff model.pte aligned.pte
try etstream diff model.pte aligned.pte --ignore-layout
cp model.pte changed.pte
printf '\001' | dd of=changed.pte bs=1 seek=5000 conv=notrunc status=none
try etstream diff aligned.pte changed.pte --ignore-layout
try etstream diff model.pte changed.pte --json
etstream bundle model.pte --cases cases.json -o a.bpte >/dev/null
etstream bundle changed.pte --cases cases.json -o b.bpte --to segmented >/dev/null
try etstream diff a.bpte b.bpte
# One program can't be read.
cp a.bpte bad.bpte
printf 'ET99' | dd of=bad.bpte bs=1 seek=68 conv=notrunc status=none
try etstream diff a.bpte bad.bpte
try etstream diff bad.bpte a.bpte --json
try etstream diff model.pte a.bpte
try etstream diff model.pte missing.pte
try etstream diff model.pte
# These are checkpoints.
cp "$GOLDEN"/gguf/expected.gguf a.gguf
sed 's/blocks.Q4_0/blocks.q4_0/' a.gguf >b.gguf
try etstream diff a.gguf b.gguf
cp "$GOLDEN"/float_conversions/expected.safetensors c.safetensors
try etstream diff a.gguf c.safetensors --json >differences.json
head -n 13 differences.json
etstream ptd c.safetensors -o c.ptd >/dev/null
etstream ptd c.safetensors --to pth -o c.pth >/dev/null
for a in c.ptd c.safetensors c.pth; do
  for b in c.ptd c.safetensors c.pth; do
    etstream diff "$a" "$b" --ignore-layout
  done
done
try etstream diff c.ptd c.safetensors >differences
head -n 6 differences
try etstream diff a.gguf c.ptd >differences
head -n 6 differences
try etstream diff model.pte c.ptd
try etstream diff model.pte a.gguf
try etstream inspect a.gguf --duplicates | tail -n 3
