# Each kind of piece comes out by the path that inspect prints.
cp "$GOLDEN"/delegated_program/program.pte delegated.pte
cp "$GOLDEN"/tensor_data/expected.ptd weights.ptd
cp "$GOLDEN"/native_package/expected.ptn package.ptn
cp "$GOLDEN"/gguf/expected.gguf weights.gguf
cp "$GOLDEN"/torch_files/protocol_2.pth weights.pth
etstream bundle model.pte --cases cases.json -o model.bpte >/dev/null
etstream convert model.bpte --to segmented -o segmented.bpte >/dev/null
etstream fat cpu=delegated.pte a/b=model.bpte -o model.fat >/dev/null
while IFS='|' read -r file piece; do
  etstream extract "$file" "$piece" -o piece --no-sync && sha256sum <piece
done <<'END'
model.pte|flatbuffer
model.pte|segments/0
model.pte|constants/3
delegated.pte|forward/delegate 0
delegated.pte|forward/delegate 0/graph
delegated.pte|forward/delegate 0/constants
model.bpte|program
model.bpte|program/constants/3
model.bpte|cases/forward/1/input 0
segmented.bpte|program
segmented.bpte|cases/forward/1/expected output 0
weights.ptd|segments/0
weights.ptd|named/linear.weight
weights.ptd|named/packed für XNNPACK
weights.gguf|named/blocks.Q4_0
weights.pth|named/model.weight
package.ptn|graph
package.ptn|named/again
package.ptn|members/aliases.json
model.fat|cpu
model.fat|cpu/forward/delegate 0
model.fat|a%2Fb/cases/forward/1/input 0
END
# All pieces are as large as inspect says, at least.
for file in model.pte delegated.pte model.bpte weights.ptd weights.gguf weights.pth package.ptn model.fat; do
  etstream inspect "$file" --json | grep -A9 '"path"' | sed -n 's/^ *"path": "\(.*\)",*$/\1/p' | while read -r piece; do
    etstream extract "$file" "$piece" -o piece --no-sync >/dev/null || echo "$file has no $piece"
  done
done
# A wrong path is told with what is near.
try etstream extract model.pte segments/1 -o other
try etstream extract weights.ptd linear.weight -o other
try etstream extract model.fat "a/b/program" -o other
try etstream extract model.pte "" -o other
