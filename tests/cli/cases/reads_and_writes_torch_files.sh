# Files that torch.load reads are taken, and others are refused.
checkpoint() { # FILE HEADER DATA
  local header=$2
  while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
  printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s%s" "$header" "$3" >"$1"
}
checkpoint in.safetensors '{"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"f":{"dtype":"F8_E4M3","shape":[],"data_offsets":[4,5]}}' abcde
try etstream ptd in.safetensors --to pth -o out.pth
try etstream inspect out.pth
try etstream verify out.pth
try etstream diff in.safetensors out.pth
try etstream extract out.pth named/a -o -
try etstream ptd out.pth --to safetensors -o again.safetensors
etstream ptd out.pth --to pth -o - | cmp - out.pth && echo the same bytes
try etstream ptd in.safetensors --to pth --split-max-size 1K -o never
model() { # TYPE MORE: a folder with a tensor of Meta's names
  mkdir -p model
  checkpoint model/model.safetensors '{"tok_embeddings.weight":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' abcd
  echo '{"model_type":"'"$1"'","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,
    "num_key_value_heads":2,"vocab_size":96,"head_dim":16'"${2-,\"sliding_window\":null}"'}' >model/config.json
}
model llama
try etstream ptd model --to pth -o model/out.pth --dry-run
etstream ptd model --to pth -o model/out.pth --dry-run --json | grep params
ls model
try etstream ptd model --to pth -o model/params.json --dry-run | tail -2
for type in llama mistral qwen2 qwen3; do
  model $type
  try etstream ptd model --to pth -o model/out.pth
  cat model/params.json
done
rm model/params.json
model gemma
try etstream ptd model --to pth -o model/out.pth
for members in '"use_sliding_window":true' '"layer_types":["full_attention","sliding_attention"]' '"rms_norm_eps":"1e-5"' \
  '"rope_scaling":{"rope_type":"default","mrope_section":[1]}' '"quantization_config":{"quant_method":"gptq"}'; do
  model qwen2 ",$members"
  try etstream ptd model --to pth -o model/out.pth
done
model mistral ',"sliding_window":4096,"max_position_embeddings":32768'
try etstream ptd model --to pth -o model/out.pth
model qwen3 ',"rope_scaling":{"rope_type":"llama3","factor":2.0,"high_freq_factor":4.0}'
try etstream ptd model --to pth -o model/out.pth
ls model
model mistral ',"sliding_window":4096,"max_position_embeddings":4096,"logit_scale":2,"tie_word_embeddings":true'
try etstream ptd model --to pth -o model/out.pth
# Quantised numbers are copied with their scales, and become no others without them.
checkpoint scaled.safetensors '{"w.weight":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},"w.weight_scale_inv":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}' abcdefgh
try etstream ptd scaled.safetensors -o scaled.ptd
try etstream ptd scaled.safetensors --dtype bf16 --only w.weight -o never
try etstream ptd scaled.safetensors --map llama -o never
mkdir fp8
checkpoint fp8/model.safetensors '{"w.weight":{"dtype":"F8_E4M3","shape":[2,2],"data_offsets":[0,4]},"w.weight_scale_inv":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},"v.weight":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[12,13]}}' '0808   ?   @8'
for block in '[2,2]' '[1,2]'; do
  echo '{"dtype":"float32","quantization_config":{"quant_method":"fp8","weight_block_size":'"$block"'}}' >fp8/config.json
  try etstream ptd fp8 --dtype f64 --only w.weight -o fp8.ptd
done
try etstream ptd fp8 --dtype v.weight=f64 -o never
etstream extract fp8.ptd named/w.weight -o - | od -An -tfD
printf '\x80\x04\x95\0\0\0\0\0\0\0\0.' >plain.pth
try etstream verify plain.pth
cp out.pth damaged.pth
printf x | dd of=damaged.pth bs=1 seek=577 conv=notrunc status=none
try etstream verify damaged.pth
cp "$GOLDEN/torch_files/no_checksums.pth" .
try etstream verify no_checksums.pth
head -c 300 out.pth >short.pth
try etstream verify short.pth
