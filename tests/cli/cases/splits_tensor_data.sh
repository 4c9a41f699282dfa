# --split-max-size writes tensor data as several files by key, of ptd and of pte; a command that reads the first file
# reads all.
cp "$GOLDEN"/native_package/constants.safetensors .
try etstream ptd constants.safetensors -o w.ptd --split-max-size 24 --dry-run
try etstream ptd constants.safetensors -o w.ptd --split-max-size 24
try etstream ptd constants.safetensors -o again.ptd --split-max-size 24 --json
try etstream inspect w-00001-of-00002.ptd
try etstream ptd w-00001-of-00002.ptd -o one.ptd
try etstream ptd constants.safetensors -o w.ptd --split-max-size 1G
# The files may belong to a program.
try etstream pte model.pte --constants-to weights --split-max-size 20480 -o small.pte
try etstream verify small.pte weights-00001-of-00003.ptd
try etstream verify small.pte weights-00002-of-00003.ptd
try etstream pte small.pte --constants-from weights-00001-of-00003.ptd -o back.pte
try etstream pte model.pte --constants-to weights.ptd --split-max-size 1M -o small.pte --json --dry-run | tail -3
try etstream pte model.pte --constants-to weights.ptd --split-max-size 1M -o small.pte --json --dry-run | grep tensor_data
try etstream pte model.pte --constants-to weights.ptd --split-max-size 20600 -o small.pte --json --dry-run | grep tensor_data
rm weights-00003-of-00003.ptd
try etstream verify small.pte weights-00001-of-00003.ptd
# Commands that fail leave nothing.
try etstream ptd constants.safetensors -o other.ptd --split-max-size 23
try etstream ptd constants.safetensors -o - --split-max-size 24
try etstream ptd constants.safetensors -o other.ptd --split-max-size 24 --to safetensors
try etstream ptd constants.safetensors -o other.ptd --split-max-size 0
mkdir other-00002-of-00002.ptd
try etstream ptd constants.safetensors -o other.ptd --split-max-size 24
ls -A | grep -v npy
