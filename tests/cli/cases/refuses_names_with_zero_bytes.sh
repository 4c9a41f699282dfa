# ExecuTorch ends a name at its first zero byte. No file that has a name with one is read, and none is written.
put_zero() { printf '\000' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
place() { LC_ALL=C grep -abo "$2" "$1" | head -1 | cut -d: -f1; }
spoil() {
  cp "$1" "bad.${1##*.}"
  put_zero "bad.${1##*.}" $(($(place "$1" "$2") + 3))
}
for name in forward aten:: ; do
  spoil model.pte "$name"
  try etstream verify bad.pte
  try etstream inspect bad.pte
done
try etstream pte bad.pte -o out.pte
cp "$GOLDEN/delegated_program/program.pte" delegate.pte
spoil delegate.pte XnnpackBackend
try etstream verify bad.pte
etstream pte model.pte --constants-to weights.ptd -o small.pte >all.txt
key=$(etstream inspect --json weights.ptd | sed -n 's/^ *"key": "\(.*\)",/\1/p' | head -1)
spoil weights.ptd "$key"
try etstream verify bad.ptd
try etstream ptd bad.ptd -o out.ptd
etstream bundle model.pte --cases cases.json -o good.bpte >all.txt
cp good.bpte bad.bpte
for at in $(LC_ALL=C grep -abo forward good.bpte | cut -d: -f1); do put_zero bad.bpte $((at + 3)); done
try etstream verify bad.bpte

echo '--- what is written'
echo '{"1": "w\u0000a"}' >keys.json
try etstream pte model.pte --constants-to new.ptd --keys keys.json -o out.pte
echo '{"1": ""}' >keys.json
try etstream pte model.pte --constants-to new.ptd --keys keys.json -o out.pte
echo '{"for\u0000ward": [{"inputs": []}]}' >zero.json
try etstream bundle model.pte --cases zero.json --unchecked -o out.bpte
ls out.* new.* 2>/dev/null
