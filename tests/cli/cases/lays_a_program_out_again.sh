# A program gets another alignment of segments, and goes back; without options its bytes stay the same.
try etstream pte model.pte -o same.pte
cmp same.pte model.pte && echo "the same bytes"
try etstream pte model.pte --segment-alignment 4096 -o aligned.pte
etstream inspect aligned.pte | grep -e 'segment 0'
etstream verify aligned.pte
etstream pte aligned.pte --segment-alignment 128 -o - | cmp - model.pte && echo "and back"
etstream pte model.pte --segment-alignment 4096 --dry-run
try etstream pte model.pte --segment-alignment 48 -o other.pte
try etstream pte model.pte --delegates outside -o other.pte
try etstream pte model.pte
try etstream pte model.pte --segment-alignment 64 -o model.pte
cp model.pte bad.pte
truncate -s -1 bad.pte
try etstream pte bad.pte -o other.pte
ls -A | grep pte
