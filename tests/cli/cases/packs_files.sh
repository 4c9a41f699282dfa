# SPDX-License-Identifier: BSD-3-Clause
#
# A packed file is read as the original is, and restored bit for bit. What is damaged is refused, with its offset.
# The sizes, and the offsets, depend on the release of zstd.
without_sizes() {
  sed -E -e 's/[0-9.]+ (bytes|KiB) packed/SIZE packed/' -e 's/unpacked, .*/unpacked/' -e 's/packed_size": [0-9]+/packed_size": SIZE/' \
    -e 's/^It is packed, in .* bytes\)/It is packed, in SIZE/' -e 's/offset [1-9][0-9]*/offset N/' \
    -e 's/expected [0-9]+ bytes more/expected N bytes more/' -e "s/found '[^']*'; the end/found OTHERS; the end/"
}

{
etstream pack model.pte
etstream pack model.pte -o again.etz --threads 4 --json
cmp again.etz model.pte.etz
etstream verify model.pte.etz
etstream inspect model.pte.etz | head -5
etstream diff model.pte model.pte.etz
etstream unpack model.pte.etz -o again.pte
cmp again.pte model.pte
cat model.pte | etstream pack - | etstream unpack - | cmp - model.pte
etstream pack cases.json -o - | zstd --decompress | cmp - cases.json

printf x >one
etstream pack one -o one.packed | sed 's/.*unpacked/unpacked/' >share
echo "unpacked, $(stat -c %s one.packed)00.0 %" | cmp - share

echo "== to and from what is no regular file"
mkfifo pipe
cat pipe >piped.etz &
try etstream pack model.pte -o pipe
wait
cmp piped.etz model.pte.etz
try etstream pack model.pte -o /dev/null
cat model.pte.etz >pipe &
try etstream unpack - -o again.pte <pipe
wait
cat model.pte | etstream pack - -o again.etz --json
cmp again.etz model.pte.etz

echo "== written by any subcommand"
etstream bundle model.pte.etz --cases cases.json -o model.bpte.etz
etstream bundle model.pte --cases cases.json -o model.bpte
etstream unpack model.bpte.etz -o unpacked.bpte
cmp unpacked.bpte model.bpte
etstream pte model.pte.etz --constants-to weights.ptd.etz --split-max-size 20480 -o small.pte.etz
ls ./*.etz
etstream verify small.pte.etz weights-00001-of-00003.ptd.etz

echo "== found by the name of the original"
mkdir packed && cp model.pte.etz packed
etstream verify packed/model.pte
try etstream verify packed/other.pte

echo "== with limits"
# The memory that packing takes depends on the number of processors.
etstream pte model.pte --strip-stack-traces -o x.pte.etz --max-memory 4M 2>/dev/null || echo refused
etstream pte model.pte --strip-stack-traces -o x.pte.etz --max-memory 64M

echo "== names"
try etstream pack model.pte
try etstream unpack model.pte.etz
try etstream unpack model.pte
try etstream unpack model.pte -o x
cp model.pte.etz without-ending
try etstream unpack without-ending
try etstream pack model.pte.etz
try etstream pack - -o x <model.pte.etz
try etstream pack model.pte -o model.pte
try etstream pack no-such-file
: >empty
etstream pack empty
etstream unpack empty.etz -o empty-again && cmp empty empty-again

echo "== damage"
head -c 3000 model.pte.etz >cut.etz
try etstream verify cut.etz
try etstream unpack cut.etz
try etstream unpack - <cut.etz -o x
cp model.pte.etz flipped.etz
planned() { etstream pte model.pte -o "$1" --dry-run --json | sed -n 's/.*"memory": \([0-9]*\).*/\1/p'; }
[ "$(planned plan.pte.etz)" -gt "$(planned plan.pte)" ] && echo "a plan has the memory that packing takes"
printf 'X' | dd of=flipped.etz bs=1 seek=2000 conv=notrunc status=none
try etstream verify flipped.etz
try etstream unpack flipped.etz
{ cat model.pte.etz; echo; } >longer.etz
try etstream verify longer.etz
try etstream unpack - -o x <longer.etz
ls x flipped cut 2>&1
} 2>&1 | without_sizes
