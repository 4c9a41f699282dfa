# extract gives back the parts that were bundled, and bundle gives back the bundle.
etstream bundle model.pte --cases cases.json -o out.bpte >/dev/null
try etstream extract out.bpte program -o program.pte --cases parts
cmp program.pte model.pte
ls parts
cat parts/cases.json
cmp parts/forward_0_input_0.npy image_0.npy && echo "the same tensor"
etstream bundle program.pte --cases parts/cases.json -o again.bpte >/dev/null
cmp out.bpte again.bpte && echo "the same bundle"
etstream extract out.bpte program -o - | cmp - model.pte
etstream extract out.bpte program/segments/0 -o - | sha256sum
etstream extract model.pte segments/0 -o segment && sha256sum <segment
# Commands that fail leave nothing.
try etstream extract out.bpte --cases parts
try etstream extract out.bpte
try etstream extract out.bpte program/segments/7 -o other
try etstream extract out.bpte program/segments/0
try etstream extract model.pte program -o other
try etstream extract cases.json program -o other
try etstream extract out.bpte program -o out.bpte
try etstream extract out.bpte program -o missing/other
ls -A | grep -v npy
