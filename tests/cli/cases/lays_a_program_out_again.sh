# A program gets another alignment of segments, and goes back; without options its bytes stay the same.
try etstream pte model.pte -o same.pte
cmp same.pte model.pte && echo "the same bytes"
try etstream pte model.pte --segment-alignment 4096 -o aligned.pte
etstream inspect aligned.pte | grep -e 'segments/0'
etstream verify aligned.pte
etstream pte aligned.pte --segment-alignment 128 -o - | cmp - model.pte && echo "and back"
etstream pte model.pte --segment-alignment 4096 --dry-run
# Segments may follow each other without padding.
cat >odd.json <<'JSON'
{"version": 0, "execution_plan": [{"name": "f", "container_meta_type": {}, "values": [{"val_type": "Int", "val": {}}],
 "inputs": [0], "outputs": [0], "chains": [{"instructions": []}], "operators": [], "delegates": [],
 "non_const_buffer_sizes": [0]}], "constant_buffer": [{"storage": []}], "segments": [{"data": [1, 2, 3]}, {"data": [4]}],
 "named_data": [{"key": "a", "segment_index": 0}, {"key": "b", "segment_index": 1}]}
JSON
etstream pte odd.json -o spaced.pte >/dev/null
etstream pte spaced.pte --segment-alignment 1 -o odd.pte >/dev/null
etstream inspect odd.pte | grep 'segments.*named data'
try etstream pte model.pte --segment-alignment 48 -o other.pte
try etstream pte model.pte --delegates outside -o other.pte
try etstream pte model.pte
try etstream pte model.pte --segment-alignment 64 -o model.pte
cp model.pte bad.pte
truncate -s -1 bad.pte
try etstream pte bad.pte -o other.pte
ls -A | grep pte
