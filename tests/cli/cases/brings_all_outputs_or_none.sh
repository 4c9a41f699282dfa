# Several outputs of one command appear together, whatever their kind: if one can't appear, the others stay as before.
etstream bundle model.pte --cases cases.json -o out.bpte >all.txt
mkdir full empty
touch full/x
echo precious >keep.pte
try etstream extract out.bpte program -o keep.pte --cases full
try etstream extract out.bpte program -o keep.pte --cases full/x/y
cat keep.pte
try etstream extract out.bpte program -o both --cases both
try etstream extract out.bpte program -o keep.pte --cases empty
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
try etstream share model.pte other.pte --weights-to new.ptd --fat ./new.ptd --dry-run | tail -1
try etstream share model.pte other.pte --weights-to new.ptd --out-dir . --dry-run | tail -1
try etstream pte model.pte -o model.pte --dry-run | tail -1
try etstream pte model.pte --constants-to new.pte -o ./new.pte --dry-run | tail -1
same() { # COMMAND...: checks that the run and the dry run fail in the same words
  etstream "$@" >output 2>run.txt && echo "it ran"
  etstream "$@" --dry-run >output 2>dry.txt && echo "the dry run found nothing"
  cmp run.txt dry.txt && cat run.txt
}
same share model.pte other.pte --weights-to full --out-dir made
same share model.pte other.pte --weights-to w.ptd --out-dir model.pte
same share model.pte other.pte --weights-to w.ptd --out-dir none/made
same share model.pte other.pte --weights-to w.ptd --fat none/out.fat
same share model.pte other.pte --weights-to none/w.ptd --out-dir new
same share model.pte other.pte --weights-to w.ptd --out-dir new --max-disk 1K
same share model.pte model.pte --weights-to w.ptd --out-dir new
try etstream share model.pte other.pte --weights-to ./new/w.ptd --out-dir new/ --dry-run 2>&1 | tail -1
same share model.pte out.bpte --weights-to w.ptd --out-dir new
etstream share model.pte other.pte --least-size 1G --weights-to w.ptd --out-dir new --dry-run 2>&1 >output
same pte model.pte -o full
same pte model.pte -o none/out.pte
same pte model.pte -o model.pte/out.pte
same pte model.pte --constants-to full -o out.pte
same pte model.pte --constants-to none/w.ptd --split-max-size 20480 -o out.pte
same ptd model.pte -o full
same ptd model.pte -o none/w.ptd --split-max-size 20480
same ptd model.pte --to pth -o full
same bundle model.pte --cases cases.json -o full
same convert out.bpte --to segmented -o none/out.bpte
same fat a=model.pte -o full
same fat a=model.pte -o "$(head -c 256 /dev/zero | tr '\0' n)"
(ulimit -f 4; try etstream share model.pte other.pte --weights-to w.ptd --out-dir new 2>/dev/null)
ls -A new none made 2>&1
echo '--- an input that changes while a pipe is full'
mkfifo pipe
echo '{"*": "new.*"}' >map.json
head -c 300000 /dev/urandom >big
{ printf '\100\0\0\0\0\0\0\0%-64s' '{"a":{"dtype":"U8","shape":[300000],"data_offsets":[0,300000]}}' && cat big; } >big.safetensors
changed() { # FILE COMMAND...: changes the file once the command writes to the pipe
  timeout 60 "${@:2}" -o pipe >output &
  exec 3<pipe
  dd bs=1 count=1 status=none <&3 >output
  echo >>"$1"
  cat <&3 >output
  wait $!
  echo "exit code $?"
}
changed model.pte etstream pack big --base model.pte
changed big etstream pack big --base other.pte
changed map.json etstream ptd big.safetensors --map map.json
