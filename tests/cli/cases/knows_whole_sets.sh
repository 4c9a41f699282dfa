# Weights may be in several files: the facts that a set states about itself have to hold, and a part of one needs an
# option.
checkpoint() { # FILE HEADER DATA
  local header=$2
  while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
  printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s%s" "$header" "$3" >"$1"
}
tensor() { # FILE NAME DATA
  checkpoint "$1" "{\"$2\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}" "$3"
}
# GGUF has these facts in its metadata: split.no, split.count and split.tensors.count.
gguf() { # FILE NUMBER
  printf 'GGUF\3\0\0\0\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0' >"$1"
  printf '\10\0\0\0\0\0\0\0split.no\2\0\0\0'"\\$2"'\0' >>"$1"
  printf '\13\0\0\0\0\0\0\0split.count\2\0\0\0\3\0' >>"$1"
  printf '\23\0\0\0\0\0\0\0split.tensors.count\5\0\0\0\3\0\0\0' >>"$1"
  printf '\2\0\0\0\0\0\0\0t%s\1\0\0\0\4\0\0\0\0\0\0\0\30\0\0\0\0\0\0\0\0\0\0\0' "$2" >>"$1"
  truncate -s %32 "$1"
  printf 'abc%s' "$2" >>"$1"
}
for i in 1 2 3; do gguf m-0000$i-of-00003.gguf $((i - 1)); gguf part$i.gguf $((i - 1)); done
try etstream ptd m-00001-of-00003.gguf -o all.ptd
try etstream ptd m-00003-of-00003.gguf m-00002-of-00003.gguf m-00001-of-00003.gguf -o order.ptd
try etstream ptd part?.gguf -o renamed.ptd
try cmp all.ptd renamed.ptd
try etstream verify m-00001-of-00003.gguf
try etstream inspect m-00002-of-00003.gguf
try etstream ptd m-00002-of-00003.gguf -o never
try etstream ptd part2.gguf -o never
try etstream extract m-00002-of-00003.gguf named/t1 -o -
try etstream verify m-00002-of-00003.gguf
try etstream diff m-00001-of-00003.gguf m-00002-of-00003.gguf
try etstream diff m-00001-of-00003.gguf m-00002-of-00003.gguf --partial
try etstream ptd m-00002-of-00003.gguf -o some.ptd --partial
cp m-00003-of-00003.gguf m-00002-of-00003.gguf
try etstream ptd m-00001-of-00003.gguf -o never
try etstream verify m-00001-of-00003.gguf
rm m-00002-of-00003.gguf
try etstream verify m-00001-of-00003.gguf --json
# safetensors has them in an index, and in the names of files.
mkdir llama
tensor llama/model-00001-of-00002.safetensors model.norm.weight abcd
tensor llama/model-00002-of-00002.safetensors lm_head.weight efgh
try etstream ptd llama/model-00001-of-00002.safetensors --map llama -o never
try etstream ptd llama -o all.ptd
index=llama/model.safetensors.index.json
cat >$index <<'JSON'
{"metadata": {"total_size": 8},
 "weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors", "lm_head.weight": "model-00002-of-00002.safetensors"}}
JSON
try etstream ptd llama/model-00001-of-00002.safetensors --map llama -o never
try etstream ptd llama/model-00001-of-00002.safetensors --map llama -o one.ptd --partial
try etstream ptd llama/model-0000?-of-00002.safetensors -o all.ptd
# A folder is a checkpoint, and so is an index.
try etstream ptd llama -o folder.ptd
try cmp all.ptd folder.ptd
try etstream inspect llama
try etstream inspect $index --json
try etstream inspect llama --html page.html
try etstream inspect $index --duplicates
try etstream verify llama
try etstream verify $index --json
try etstream diff llama/ $index
try etstream diff llama all.ptd --ignore-layout
try etstream diff llama part1.gguf --partial
try etstream extract llama named/lm_head.weight -o -
sed -i 's/: 8/: 9/' $index
try etstream verify $index
cp llama/model-00001-of-00002.safetensors llama/model-00002-of-00002.safetensors
try etstream verify llama
try etstream ptd llama -o never
rm llama/model-00002-of-00002.safetensors
try etstream verify llama
try etstream inspect llama
try etstream ptd llama -o never
try etstream ptd llama --partial -o some.ptd
# config.json says what the model is.
echo '{"model_type": "qwen2"}' >llama/config.json
try etstream ptd llama --map llama --partial -o never
try etstream ptd llama --map qwen2_5 --partial -o some.ptd --dry-run 2>&1 | grep warning
# A folder may have several checkpoints, or none.
mkdir mixed empty
cp part1.gguf mixed/a.gguf
cp all.ptd mixed
try etstream ptd mixed -o never
try etstream inspect empty
# transformers applies an adapter to the weights that it lies beside.
mkdir adapted
tensor adapted/model.safetensors w abcd
tensor adapted/adapter_model.safetensors base_model.model.w.lora_A.weight efgh
echo '{}' >adapted/adapter_config.json
try etstream ptd adapted -o never
# A folder may also have shards of .bin files, known by their names; those of optimizers and tokenizers end like them.
mkdir bins
etstream ptd all.ptd --only 'lm_head*' --to pth -o bins/pytorch_model-00001-of-00002.bin >output
etstream ptd all.ptd --only 'm*' --to pth -o bins/pytorch_model-00002-of-00002.bin >output
cp bins/pytorch_model-00001-of-00002.bin bins/optimizer.bin
try etstream ptd bins -o bins.ptd
try etstream verify bins
sed -i s/efgh/efgi/ bins/pytorch_model-00001-of-00002.bin
try etstream verify bins
rm bins/pytorch_model-00002-of-00002.bin
try etstream ptd bins -o never
try etstream ptd bins --partial -o one.ptd
# The parts of a checkpoint for model parallelism have slices of the same tensors.
etstream ptd all.ptd --to pth -o consolidated.00.pth >output
try etstream ptd consolidated.00.pth -o alone.ptd
cp consolidated.00.pth consolidated.01.pth
for i in 0 1; do
  try etstream ptd consolidated.0$i.pth -o never
  try etstream verify consolidated.0$i.pth
done
try etstream ptd consolidated.01.pth --partial -o part.ptd
# The first file of tensor data stands for all.
try etstream ptd all.ptd --split-max-size 4 -o w.ptd
try etstream verify w-00001-of-00002.ptd
try etstream verify w-00002-of-00002.ptd
try etstream ptd w-00002-of-00002.ptd -o never
try etstream pte model.pte --constants-to c.ptd --split-max-size 20480 -o thin.pte
try etstream pte thin.pte --constants-from c-00001-of-00003.ptd -o back.pte
try etstream pte thin.pte --constants-from c-00002-of-00003.ptd -o never
try etstream pte thin.pte --constants-from c-00002-of-00003.ptd --partial -o some.pte
for wrong in empty garbled missing copied; do
  case $wrong in
    empty) : >w-00002-of-00002.ptd ;;
    garbled) head -c 100 w-00001-of-00002.ptd >w-00002-of-00002.ptd ;;
    missing) rm w-00002-of-00002.ptd ;;
    copied) cp w-00001-of-00002.ptd w-00002-of-00002.ptd ;;
  esac
  try etstream verify w-00001-of-00002.ptd
  try etstream ptd w-00001-of-00002.ptd -o never
done
ls never
