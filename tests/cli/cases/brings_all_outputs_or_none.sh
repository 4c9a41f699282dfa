# Several outputs of one command come together, whatever their kind: where one can't come, the others are as before.
etstream bundle model.pte --cases cases.json -o out.bpte >all.txt
mkdir full empty
touch full/x
echo precious >keep.pte
try etstream extract out.bpte --program keep.pte --cases full
try etstream extract out.bpte --program keep.pte --segment 0 -o segment --cases full/x/y
cat keep.pte
try etstream extract out.bpte --program both --cases both
try etstream extract out.bpte --program keep.pte --segment 0 -o segment --cases empty
cmp keep.pte model.pte
ls -A empty | head -1
echo '--- flatbuffers'
echo 'table A { a: int; } root_type A;' >a.fbs
echo '{"a": 1}' >one.json
echo '{"b": 1}' >two.json
mkdir made
echo precious >made/one.bin
try etstream compile a.fbs one.json two.json -o made
try etstream compile --exact a.fbs one.json two.json -o made/
cat made/one.bin
ls -A made
echo '{"a": 2}' >two.json
try etstream compile a.fbs one.json two.json -o made
cp made/one.bin three.bin
head -c 3 three.bin >four.bin
try etstream decompile a.fbs --raw-binary -o made -- three.bin four.bin
ls -A made
try etstream decompile a.fbs --raw-binary -o made -- three.bin made/two.bin
cat made/three.json made/two.json
echo '--- a dry run refuses what the run itself would'
cp model.pte other.pte
try etstream share model.pte other.pte --weights new.ptd --fat ./new.ptd --dry-run | tail -1
try etstream share model.pte other.pte --weights new.ptd --out-dir . --dry-run | tail -1
try etstream pte model.pte -o model.pte --dry-run | tail -1
try etstream pte model.pte --constants-to new.pte -o ./new.pte --dry-run | tail -1
