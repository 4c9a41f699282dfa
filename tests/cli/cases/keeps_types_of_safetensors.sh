# Types that ExecuTorch lacks are copied from safetensors to safetensors, with their shape, and their size is checked.
python3 - <<'PYTHON'
import json, struct

def write(name, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data)

def one(dtype, shape, size):
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}

types = {"F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64}
header, at = {}, 0
for name, bits in types.items():
    header[name.lower()] = {"dtype": name, "shape": [2, 16], "data_offsets": [at, at + 4 * bits]}
    at += 4 * bits
write("all.safetensors", header, bytes(i % 251 for i in range(at)))
write("short.safetensors", one("F8_E8M0", [1000], 3), b"abc")
write("half.safetensors", one("F4", [3], 2), b"ab")
write("null.safetensors", b'{"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8))
write("extra.safetensors", b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"extra":{"x":[1]}}}', bytes(8))
write("new.safetensors", one("F3", [8], 3), b"abc")
PYTHON
try etstream verify all.safetensors
try etstream inspect all.safetensors
try etstream ptd all.safetensors --to safetensors -o copy.safetensors
try etstream diff all.safetensors copy.safetensors
try etstream ptd all.safetensors -o out.ptd
try etstream ptd all.safetensors --opaque -o out.ptd
for file in short half null extra new; do try etstream verify $file.safetensors; done
try etstream ptd new.safetensors --to safetensors -o out.safetensors
try etstream ptd out.ptd --only f4 --to safetensors -o out.safetensors
