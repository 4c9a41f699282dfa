# A bundle is segmented by bundle or by convert, and comes back: equal bytes to a file, through a pipe, a FIFO, to a
# slow reader. The program and one tensor are larger than a pipe holds.
cp model.pte large.pte
truncate -s 3M large.pte
head -c 300000 /dev/urandom >x.bin
cat >large.json <<'JSON'
{"forward": [{"inputs": [{"raw": "x.bin", "dtype": "uint8", "shape": [300000]}], "expected_outputs": [1]}]}
JSON
bundle() { etstream bundle large.pte --cases large.json --unchecked "$@"; }
slowly() { sleep 0.2; dd bs=1000 status=none; }
# compare FILE COMMAND...
compare() {
  local expected=$1
  shift
  "$@" -o - | cmp - "$expected"
  "$@" -o - | slowly | cmp - "$expected"
  timeout 20 dd if=fifo bs=1000 status=none | cmp - "$expected" &
  "$@" -o fifo >/dev/null
  wait $! && echo "$expected through pipes"
}

bundle -o bp08 >/dev/null
try bundle --to segmented -o segmented
try etstream convert bp08 --to segmented -o converted
cmp converted segmented && echo "bundled is converted"
try etstream convert segmented --to bp08 -o back
cmp back bp08 && echo "there and back"
try etstream convert segmented --to segmented -o copy
cmp copy segmented && echo "a copy"
bundle --to segmented --no-hash -o unhashed >/dev/null
cmp -s unhashed segmented || echo "without hashes it is another"
# Packing never gives a bundle with bytes after its end; such a bundle keeps its own layout.
{ cat bp08; head -c 16 /dev/zero; } >other
etstream convert other --to segmented -o kept >/dev/null

mkfifo fifo
compare segmented bundle --to segmented
compare unhashed bundle --to segmented --no-hash
compare segmented etstream convert bp08 --to segmented
compare unhashed etstream convert bp08 --to segmented --no-hash
compare kept etstream convert other --to segmented
compare bp08 etstream convert segmented --to bp08
compare other etstream convert kept --to bp08
compare segmented etstream convert segmented --to segmented
# A reader that goes away is an error.
{ bundle --to segmented -o - >&3; echo "exit code $?"; } 3> >(head -c 1000 >start)
for to in segmented bp08; do
  for from in bp08 segmented; do
    { etstream convert $from --to $to -o - >&3; echo "exit code $?"; } 3> >(head -c 1000 >start)
  done
done
# Damaged bytes do not leave the file whose hashes show the damage.
cp segmented damaged
printf X | dd of=damaged bs=1 seek=200000 conv=notrunc status=none
try etstream convert damaged --to bp08 -o out
try etstream extract damaged program -o out
try etstream convert kept --to segmented --no-hash -o out
try etstream convert unhashed --to segmented -o out
# A file is not converted over itself.
cp bp08 same
try etstream convert same --to segmented -o same
cmp bp08 same
ls -A | grep -v -e npy -e json
