# The message about a file of the wrong kind names its kind and the command that takes it, whatever was expected.
quietly() { "$@" >output; }
quietly etstream bundle model.pte --cases cases.json -o bundle.bpte
quietly etstream bundle model.pte --cases cases.json --to segmented -o segmented.bpte
quietly etstream pte model.pte --constants-to weights.ptd -o thin.pte
quietly etstream ptd weights.ptd --to safetensors -o weights.safetensors
quietly etstream ptd weights.ptd --to pth -o weights.pth
quietly etstream fat a=thin.pte -o container.fat
cp "$GOLDEN/native_package/expected.ptn" package.ptn
printf 'packed weights and an index CWPX\002\0\0\0' >cache.xpwc
printf 'GGUF\003\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >weights.gguf
printf '{"metadata":{},"weight_map":{"a":"weights.safetensors"}}' >model.safetensors.index.json
printf '{"version":0,"execution_plan":[]}' >program.json
printf '\357\273\277{"architectures":["LlamaForCausalLM"],"model_type":"llama"}' >config.json
printf '[{"method":"forward","cases":[{"inputs":[],"expected_outputs":[]}]}]' >list.json
printf '{"some":"thing"}' >other.json
mkdir folder
all='model.pte bundle.bpte segmented.bpte weights.ptd weights.safetensors weights.gguf weights.pth container.fat package.ptn cache.xpwc
  model.safetensors.index.json program.json config.json list.json other.json folder'
for command in 'pte FILE -o out' 'convert FILE --to bp08 -o out' 'bundle FILE --cases cases.json -o out' \
  'bundle model.pte --cases FILE -o out' 'ptd FILE -o out' 'ptd weights.ptd --map FILE -o out' \
  'verify FILE' 'verify thin.pte FILE' 'verify FILE weights.ptd' 'pte thin.pte --constants-from FILE -o out' \
  'pte model.pte --constants-to to.ptd --keys FILE -o out' 'ptn FILE --constants weights.ptd -o out'; do
  echo "etstream $command"
  for file in $all; do
    etstream ${command//FILE/$file} 2>&1 >output | grep '^etstream'
  done
done
# A case of a bundle, and a part of a container, have names of their own.
printf '{"forward": [{"inputs": [{"npy": "model.pte"}]}]}' >cases.json
try etstream bundle model.pte --cases cases.json -o out
printf '{"forward": [{"inputs": [{"safetensors": "model.pte", "name": "x"}]}]}' >cases.json
try etstream bundle model.pte --cases cases.json -o out
# A method's name is not taken for a server's error, and errors inside JSON of the right kind are reported.
printf '{"detail": [{"inputs": 3}]}' >cases.json
try etstream bundle model.pte --cases cases.json -o out
printf '{"execution_plan": [3]}' >program.json
try etstream pte program.json -o out
