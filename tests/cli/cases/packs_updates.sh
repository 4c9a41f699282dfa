# SPDX-License-Identifier: BSD-3-Clause
#
# An update has what a file has in addition to its base, and is restored with that base alone, bit for bit. The sizes, and
# the offsets, depend on the release of zstd.
without_sizes() {
  sed -E -e 's/[0-9.]+ (bytes|KiB) packed/SIZE packed/' -e 's/unpacked, .*/unpacked/' -e 's/packed_size": [0-9]+/packed_size": SIZE/' \
    -e 's/offset [1-9][0-9]*/offset N/' -e 's/expected [0-9]+ bytes more/expected N bytes more/'
}
smaller() { [ "$(stat -c %s "$1")" -lt "$2" ] && echo "$1 is smaller than $2 bytes"; }

{
etstream pte model.pte --delegates inline --constant-tensor-alignment 256 -o new.pte
etstream pack new.pte --base model.pte -o update.etz
smaller update.etz 2000
etstream unpack update.etz --base model.pte -o again.pte
cmp again.pte new.pte
etstream pack new.pte --base model.pte -o again.etz --threads 1 --json
cmp again.etz update.etz

echo "== which says what it is, without its base"
etstream verify update.etz
etstream inspect update.etz | sed -n -e 's/(ETZ1).*/(ETZ1)/p' -e '/^makes/p' -e 's/.*  bytes/bytes/p'
try etstream extract update.etz changes/0 -o piece
etstream inspect update.etz --json | grep -A 5 '"update": {'
for at in 34 70 130 200 -20; do # base, headers of the piece, frames, footer
  cp update.etz flipped.etz
  printf 'X' | dd of=flipped.etz bs=1 seek=$((at < 0 ? $(stat -c %s update.etz) + at : at)) conv=notrunc status=none
  etstream verify flipped.etz >said 2>&1 && echo "a change at $at is not seen"
done
try etstream diff update.etz model.pte

echo "== a packed file stays, and so does an update"
etstream pack new.pte
try etstream pack new.pte --base model.pte
etstream verify new.pte.etz
rm new.pte.etz

echo "== of another kind, and with a packed base"
etstream pte model.pte --constants-to weights.ptd -o small.pte
etstream pack weights.ptd --base model.pte -o weights.etz
smaller weights.etz 2000
etstream pack model.pte
etstream unpack weights.etz --base model.pte.etz -o again.ptd
cmp again.ptd weights.ptd
etstream pack small.pte --base model.pte.etz -o - | etstream unpack - --base model.pte | cmp - small.pte

echo "== any bytes"
{ echo first; cat cases.json; } >now
etstream pack now --base cases.json -o now.etz
etstream unpack now.etz --base cases.json -o now-again && cmp now now-again
: >empty
etstream pack empty --base empty -o empty.etz
etstream unpack empty.etz --base empty -o empty-again && cmp empty empty-again

echo "== without the base, or with another"
try etstream unpack update.etz -o x
try etstream unpack update.etz --base new.pte -o x
cp model.pte other.pte
printf 'X' | dd of=other.pte bs=1 seek=2000 conv=notrunc status=none
try etstream unpack update.etz --base other.pte -o x
try etstream unpack model.pte.etz --base model.pte -o x
try etstream unpack update.etz --base no-such-file -o x
try etstream pack - --base model.pte -o x <new.pte
try etstream pack model.pte.etz --base model.pte -o x
try etstream pack new.pte --base model.pte -o model.pte
try etstream unpack update.etz --base model.pte -o model.pte

echo "== damage"
head -c 100 update.etz >cut.etz
try etstream unpack cut.etz --base model.pte -o x
try etstream unpack - --base model.pte -o x <cut.etz
ls x 2>&1
} 2>&1 | without_sizes
