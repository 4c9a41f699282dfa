# --dry-run shows every extent, says the size that the file then has, and writes nothing.
try etstream bundle model.pte --cases cases.json --dry-run
try etstream bundle model.pte --cases cases.json --dry-run -o out.bpte --program-alignment 4096
ls out.bpte
etstream bundle model.pte --cases cases.json --dry-run --json >plan.json
etstream bundle model.pte --cases cases.json -o out.bpte --json >report.json
cat report.json
python3 - <<'PYTHON'
import json, os
plan = json.load(open("plan.json"))
end = 0
for extent in plan["extents"]:
    assert extent["offset"] == end, extent
    end += extent["size"]
assert end == plan["size"] == os.path.getsize("out.bpte") == json.load(open("report.json"))["size"]
assert plan["metadata_size"] + plan["payload_size"] == plan["size"]
PYTHON
