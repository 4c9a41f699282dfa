# No output may be a file that the command has read, whatever the file was read for.
kept() { # FILE...: prints whether they are as they were
  sha256sum --quiet -c sums && echo "all as before"
}
cp "$GOLDEN/../../schema/program.fbs" s.fbs
cp "$GOLDEN/../../schema/scalar_type.fbs" .
etstream decompile --exact s.fbs model.pte -o program.json --leave-out 100 2>/dev/null
cp "$GOLDEN/every_dtype/tensors.safetensors" w.safetensors
cp model.pte w.bin
sed '/"segments"/,/}/ s/"size": \([0-9]*\)/"size": \1, "data": {"file": "w.bin", "offset": 0, "size": \1}/' program.json \
  >described.json
echo '{"1": "one"}' >k.json
echo '{"*": "new.*"}' >r.json
sha256sum s.fbs scalar_type.fbs model.pte program.json described.json w.bin w.safetensors k.json r.json >sums

try etstream pte model.pte -o out.pte --keys k.json --constants-to k.json
try etstream pte model.pte -o k.json --keys k.json --constants-to weights.ptd
try etstream pte model.pte --schema s.fbs -o s.fbs
try etstream pte model.pte --schema s.fbs -o scalar_type.fbs
try etstream pte program.json --segments-from model.pte -o model.pte
try etstream pte described.json -o w.bin
try etstream pte described.json -o ./described.json
try etstream ptd w.safetensors --map r.json -o r.json
try etstream decompile s.fbs model.pte -o scalar_type.fbs
try etstream decompile --exact s.fbs model.pte -o scalar_type.fbs
try etstream compile --exact s.fbs program.json -o scalar_type.fbs
kept

# The data of one input is not replaced by the output for another.
echo 'table T { d: [ubyte]; } root_type T; file_extension "out";' >t.fbs
mkdir outs
echo precious >outs/b.out
echo '{"d": {"file": "outs/b.out", "offset": 0, "size": 8}}' >a.json
echo '{"d": [1]}' >b.json
try etstream compile --exact t.fbs a.json b.json -o outs
ls outs && cat outs/b.out

# The report goes to standard output, and no output by whatever other name of it.
ln -s /dev/stdout link
for out in /dev/fd//1 /dev/./stdout //dev/stdout link so /dev/fd/3; do
  etstream pte model.pte -o "$out" --json >so 3>>so
  echo "exit code $?"
done
etstream pte model.pte -o /dev/fd/3 >so 3>>so
cmp so model.pte && echo "the program alone"
etstream pte model.pte -o /dev/null --json >/dev/null && echo "nothing is mixed where all is lost"
# An output is alone there, whatever else is written.
etstream pte model.pte --constants-to beside.ptd -o beside.pte >/dev/null
etstream pte model.pte --constants-to w.ptd -o - | cmp - beside.pte
etstream pte model.pte --constants-to - -o w.pte | cmp - beside.ptd
etstream bundle model.pte --cases cases.json -o w.bpte >/dev/null
etstream extract w.bpte program -o - --cases w.cases | cmp - model.pte
try etstream pte model.pte --constants-to - -o w.pte --json
try etstream pack model.pte -o - --json
for to in --json --html '--compare none --markdown'; do try etstream profile $to - -- echo mixed; done
rm -r w.*

# Two inputs do not go to one place.
mkdir a b o
cp model.pte a/m.pte
cp model.pte b/m.pte
try etstream decompile s.fbs a/m.pte b/m.pte -o o/
try etstream decompile --exact s.fbs a/m.pte b/m.pte -o o/
ls -A o

# Two outputs are both there, or neither is.
try etstream pte model.pte -o /dev/full --constants-to w.ptd
echo old >w.ptd
try etstream pte model.pte -o /dev/full --constants-to w.ptd
cat w.ptd
mkdir out.pte
try etstream pte model.pte -o out.pte --constants-to w.ptd
cat w.ptd

# A schema's includes have to be files; the command does not wait for a pipe.
mkfifo pipe.fbs
echo 'include "pipe.fbs"; table T { a: int; } root_type T;' >waits.fbs
try timeout 10 etstream decompile waits.fbs model.pte -o -
