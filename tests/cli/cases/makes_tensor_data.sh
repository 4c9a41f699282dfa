# Weights come from checkpoints: two safetensors files, which share a tensor.
checkpoint() { # FILE HEADER DATA
  local header=$2
  while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
  printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s%s" "$header" "$3" >"$1"
}
checkpoint one.safetensors '{"a.weight":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"a.bias":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}' abcdabcd
checkpoint two.safetensors '{"a.bias":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[1],"data_offsets":[4,6]}}' abcdxy
checkpoint three.safetensors '{"a.bias":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"f":{"dtype":"F4","shape":[2],"data_offsets":[4,5]}}' abcez
try etstream inspect one.safetensors
try etstream ptd one.safetensors two.safetensors -o weights.ptd --dry-run
try etstream ptd one.safetensors two.safetensors -o weights.ptd
try etstream verify weights.ptd
try etstream ptd one.safetensors two.safetensors --no-dedup -o larger.ptd --json
cat >model.safetensors.index.json <<'JSON'
{"metadata": {"total_size": 10}, "weight_map": {"a.weight": "one.safetensors", "b": "two.safetensors"}}
JSON
try etstream ptd model.safetensors.index.json -o weights.ptd
mv model.safetensors.index.json index
try etstream ptd model.pte -o constants.ptd
try etstream pte model.pte --constants-to moved.ptd -o without.pte
try cmp constants.ptd moved.ptd
try etstream inspect weights.ptd
try etstream ptd weights.ptd --to safetensors -o weights.safetensors
try etstream verify weights.safetensors
try etstream extract two.safetensors named/b -o -
try etstream extract two.safetensors named/c -o -
try etstream ptd one.safetensors three.safetensors -o never
try etstream ptd three.safetensors -o never
try etstream ptd three.safetensors --only 'a*' -o - | od -An -c | tail -3
try etstream ptd one.safetensors --only 'a*' --only 'c*' -o never
try etstream ptd cases.json -o never
try etstream ptd image_0.npy -o never
try etstream ptd one.safetensors -o one.safetensors
mv index model.safetensors.index.json
sed -i s/two/gone/ model.safetensors.index.json
try etstream ptd model.safetensors.index.json -o never
sed -i s/gone.safe/..\\/two.safe/ model.safetensors.index.json
try etstream ptd model.safetensors.index.json -o never
sed -i s/...two.safe/one.safe/ model.safetensors.index.json
try etstream ptd model.safetensors.index.json -o never
ls never
# Types are given for all tensors, or by their names.
header='{"a.w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b.w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
checkpoint floats.safetensors "$header" "<<<<>>>>"
etstream ptd floats.safetensors --dtype f16 --dtype 'b*=bf16' -o floats.ptd >output
etstream inspect floats.ptd | grep -o 'named.*float.*'
try etstream ptd floats.safetensors --dtype 'b*=float17' -o never
# The output's ending says the format.
etstream ptd floats.safetensors -o copy.safetensors >output
cmp --silent floats.safetensors copy.safetensors || etstream inspect copy.safetensors | head -1
try etstream ptd floats.safetensors --to ptd -o never.safetensors
try etstream ptd floats.safetensors -o never.gguf
try etstream pte model.pte --constants-to never.safetensors -o never.pte
try etstream ptd floats.safetensors -o never.pth --no-dedup
ls never*
