# Long lists are cut, and what is left out is counted.
python3 - <<'PYTHON'
import json


def data(i, change):
    return [i // 2 + change] * (16 + i // 2)


def tensor(**more):
    return {"val_type": "Tensor", "val": {"scalar_type": "BYTE", "dim_order": [0], **more}}


def method(name, keys, values=(), calls=0, delegates=0):
    named = [tensor(sizes=[16], extra_tensor_info={"fully_qualified_name": key, "location": "EXTERNAL"}) for key in keys]
    return {
        "name": name, "container_meta_type": {}, "values": [*named, *values], "inputs": [], "outputs": [0],
        "chains": [{"instructions": [{"instr_args_type": "KernelCall", "instr_args": {"op_index": i, "args": [0]}} for i in range(calls)]}],
        "operators": [{"name": f"mine::op{i:02}", "overload": ""} for i in range(calls)],
        "delegates": [{"id": "Mine", "processed": {"location": "INLINE", "index": i}, "compile_specs": []} for i in range(delegates)],
        "non_const_buffer_sizes": [0, 100],
    }  # fmt: skip


for name, change in ("many", 0), ("changed", 1):
    planned = [tensor(sizes=[9 + i], allocation_info={"memory_id": 1, "memory_offset_low": 0}) for i in range(9)]
    program = {
        "version": 0,
        "execution_plan": [method("f", ["k000", "k001"], planned, 11, 61), method("g", ["k000", "k001"]), method("h", ["k000"])],
        "constant_buffer": [{"storage": []}],
        "backend_delegate_data": [{"data": [i]} for i in range(61)],
        "segments": [{"data": data(i, change)} for i in range(122)],
        "named_data": [{"key": f"k{i:03}", "segment_index": i} for i in range(122)],
    }
    open(f"{name}.json", "w").write(json.dumps(program))
PYTHON
for name in many changed; do etstream pte $name.json -o $name.pte >/dev/null; done
around() { grep -B 1 -A 1 -e '^ *\.\.\.'; }
try etstream inspect many.pte --duplicates | around
try etstream diff many.pte changed.pte | around
etstream inspect many.pte | grep '^ *1[67]  named/k00'
# A plan shows the largest extents, in the order of the file.
for i in $(seq 42); do head -c $((i * 7 % 43)) model.pte >part$i; done
try etstream fat $(for i in $(seq 42); do echo p$i=part$i; done) --no-dedup --dry-run | sed -n '1,3p; 40,$p'
