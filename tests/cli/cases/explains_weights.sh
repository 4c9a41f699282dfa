# explain tells which tensors of a checkpoint the payloads of a program are.
cp "$GOLDEN/delegated_program/program.pte" .
checkpoint() { # FILE HEADER, and the data on standard input
  local length
  length=$(printf '\\x%02x' $((${#2} & 255)) $((${#2} >> 8)))
  { printf "$length\0\0\0\0\0\0%s" "$2"; cat; } >"$1"
}
piece() { dd if=program.pte bs=1 skip="$1" count="$2" status=none; }
table='"embedding.weight":{"dtype":"F32","shape":[5,3],"data_offsets":[0,60]}'
linear='"linear.weight":{"dtype":"F32","shape":[3,4],"data_offsets":[60,108]},"linear.bias":{"dtype":"F32","shape":[3],"data_offsets":[108,120]}'
{ piece 1920 60; piece 2816 48; piece 2944 12; } | checkpoint all.safetensors "{$table,$linear}"
try etstream explain program.pte --by all.safetensors
try etstream explain program.pte --by all.safetensors --json

echo "--- each weight that was moved to a file is found there"
etstream pte program.pte --constants-to weights.ptd -o thin.pte >/dev/null
try etstream explain thin.pte weights.ptd --by all.safetensors
try etstream explain thin.pte --by all.safetensors

echo "--- steps, equal tensors, and tensors that are not there"
# The matrix is transposed here, the table is two that are equal, and the bias is missing.
{
  for column in 0 4 8 12; do for row in 0 16 32; do piece $((2816 + row + column)) 4; done; done
  piece 1920 60
  piece 1920 60
  printf '\0\0\200\077\0\0\0\100'
} | checkpoint other.safetensors '{"w":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]},"a":{"dtype":"F32","shape":[5,3],"data_offsets":[48,108]},"b":{"dtype":"F32","shape":[15],"data_offsets":[108,168]},"unused":{"dtype":"F32","shape":[2],"data_offsets":[168,176]}}'
try etstream explain program.pte --by other.safetensors
try etstream explain program.pte --by other.safetensors --json | tail -n 52
try etstream explain program.pte --by other.safetensors all.safetensors
try etstream explain model.pte --by all.safetensors

echo "--- the program in a bundle"
etstream bundle model.pte --cases cases.json -o model.bpte >/dev/null
try etstream explain model.bpte --by model.pte
etstream bundle model.pte --cases cases.json --to segmented -o segmented.bpte >/dev/null
try etstream explain segmented.bpte --by model.pte | tail -n 2
etstream pte model.pte --constants-to model.ptd -o thin_model.pte >/dev/null
etstream bundle thin_model.pte --cases cases.json -o thin.bpte >/dev/null
try etstream explain thin.bpte model.ptd --by model.pte | tail -n 2
try etstream inspect model.bpte --by model.pte | tail -n 2

echo "--- errors"
try etstream inspect thin.pte --by all.safetensors
try etstream explain program.pte --by missing.safetensors
try etstream explain missing.pte --by all.safetensors
try etstream explain weights.ptd --by all.safetensors
try etstream explain program.pte
head -c 2000 program.pte >short.pte
try etstream explain short.pte --by all.safetensors
