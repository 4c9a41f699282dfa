# Content is written as earlier releases wrote it; a file that is laid out again keeps its release.
for release in 1.0 1.1 1.2 1.5; do
  try etstream pte model.pte --as-of "$release" -o "$release.pte"
  etstream pte "$release.pte" --as-of 1.5 -o - | cmp - model.pte && echo "and back"
done
cmp 1.0.pte 1.1.pte && cmp 1.2.pte model.pte && echo "1.0 is as 1.1, and 1.2 as 1.5"
etstream pte 1.1.pte --segment-alignment 4096 -o aligned.pte
etstream pte aligned.pte --segment-alignment 128 -o - | cmp - 1.1.pte && echo "as it was written"
etstream diff 1.1.pte model.pte
try etstream bundle model.pte --cases cases.json --as-of 1.3 -o 1.3.bpte
try etstream bundle model.pte --cases cases.json --flatbuffers 25.2.10 -o 25.bpte
try etstream bundle model.pte --cases cases.json -o model.bpte
cmp -s 1.3.bpte model.bpte || echo "1.3 is not as 1.5"
try etstream verify 1.3.bpte
try etstream ptd model.pte --as-of 1.0 -o 1.0.ptd
try etstream verify 1.0.ptd
try etstream pte model.pte --as-of 1.9 -o other.pte
try etstream pte model.pte --flatbuffers new -o other.pte
