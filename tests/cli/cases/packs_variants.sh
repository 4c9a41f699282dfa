# SPDX-License-Identifier: BSD-3-Clause
#
# A program is packed without what its checkpoint gives, and restored with it, bit for bit. The sizes depend on the
# release of zstd.
without_sizes() { sed -E -e 's/[0-9.]+ (bytes|KiB) packed/SIZE packed/' -e 's/unpacked, .*/unpacked/' -e 's/hash [0-9a-f]{32}/hash HASH/g'; }
{
etstream ptd model.pte -o checkpoint.safetensors
etstream pack model.pte --base checkpoint.safetensors -o variant.etz
[ "$(stat -c %s variant.etz)" -lt 2000 ] && echo "it is small"
etstream unpack variant.etz --base checkpoint.safetensors -o again.pte
cmp again.pte model.pte
etstream unpack - --base checkpoint.safetensors -o - <variant.etz | cmp - model.pte
etstream pack model.pte --base checkpoint.safetensors -o again.etz --threads 1
cmp again.etz variant.etz

echo "== with the same tensors in other files, and a folder"
mkdir shards
etstream ptd checkpoint.safetensors -o shards/model.ptd --split-max-size 20500
rm -f again.pte
etstream unpack variant.etz --base shards -o again.pte
cmp again.pte model.pte
etstream ptd checkpoint.safetensors -o weights.pth
etstream unpack variant.etz --base weights.pth -o again.pte
cmp again.pte model.pte

echo "== a bundle, and other commands"
etstream bundle model.pte --cases cases.json -o model.bpte
etstream pack model.bpte --base checkpoint.safetensors -o bundle.etz
etstream unpack bundle.etz --base checkpoint.safetensors -o again.bpte
cmp again.bpte model.bpte
etstream verify variant.etz
etstream verify variant.etz --base checkpoint.safetensors
etstream inspect variant.etz | grep makes
etstream inspect variant.etz --base checkpoint.safetensors | grep segments/0
etstream diff variant.etz model.pte --base checkpoint.safetensors
etstream extract variant.etz segments/0 --base checkpoint.safetensors -o from-update
etstream extract model.pte segments/0 -o from-program
cmp from-update from-program

echo "== without the checkpoint, or with another"
try etstream unpack variant.etz -o x
try etstream inspect variant.etz --graph forward
{ head -c 10000 checkpoint.safetensors; printf X; tail -c +10002 checkpoint.safetensors; } >other.safetensors
try etstream unpack variant.etz --base other.safetensors -o x
try etstream unpack - --base other.safetensors -o - <variant.etz
try etstream unpack variant.etz --base model.pte -o x
try etstream unpack variant.etz --base no-such-folder -o x
try etstream verify variant.etz --base other.safetensors
try etstream unpack variant.etz --base checkpoint.safetensors -o checkpoint.safetensors
ls x 2>&1
} 2>&1 | without_sizes
