# 24 tensors of 1 MiB share one segment, as ExecuTorch writes equal weights. Each is read by itself, and for output that
# has them once for each name the command says how large it is.
python3 - <<'PYTHON'
import json, struct
data, header, at = bytes(range(256)) * 4096, {}, 0
for i in range(24):
    header[f"layers.{i}.w"] = {"dtype": "F32", "shape": [1 << 18], "data_offsets": [at, at + len(data)]}
    at += len(data)
text = json.dumps(header).encode()
open("all.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data * 24)
PYTHON
try etstream ptd all.safetensors -o shared.ptd
try etstream verify shared.ptd
try etstream ptd shared.ptd -o again.ptd
cmp shared.ptd again.ptd
try etstream ptd shared.ptd --dtype bf16 -o converted.ptd
try etstream extract shared.ptd named/layers.3.w -o tensor.bin
try etstream ptd shared.ptd --only layers.3.w -o one.ptd
try etstream ptd shared.ptd --split-max-size 2M -o split.ptd
try etstream diff shared.ptd again.ptd
try etstream inspect --duplicates shared.ptd
try etstream ptd shared.ptd --to safetensors -o out.safetensors
try etstream ptd shared.ptd --to safetensors --dry-run --json | tail -2
try etstream ptd shared.ptd --no-dedup -o out.ptd
try etstream ptd shared.ptd --no-dedup --split-max-size 1M -o out.ptd
try etstream ptd shared.ptd --to safetensors -o - | wc -c
try etstream ptd shared.ptd --to safetensors -o out.safetensors --max-disk 24M
try etstream ptd shared.ptd --to safetensors -o out.safetensors --max-disk 25M
etstream diff all.safetensors out.safetensors | head -2
try etstream ptd all.safetensors --no-dedup -o out.ptd
ls
