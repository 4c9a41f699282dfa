program=$GOLDEN/delegated_program/program.pte
weight=7a3c06cfb2fbaf0c864167c11e30fda1f77447e3998d704800da475236c7d7d3
# Moving constants out to tensor data and back gives the same program.
etstream pte "$program" --constants-to weights.ptd -o without.pte >/dev/null
etstream pte without.pte --constants-from weights.ptd -o again.pte >/dev/null
try etstream diff "$program" again.pte
# Named data under keys in another order is the same content: the hash of the weights would come last.
other=f${weight#?}
LC_ALL=C sed "s/$weight/$other/g" "$program" >renamed.pte
etstream pte renamed.pte --constants-to weights.ptd -o without.pte >/dev/null
etstream pte without.pte --constants-from weights.ptd -o again.pte >/dev/null
try etstream diff renamed.pte again.pte
try etstream diff "$program" renamed.pte
# The last weight is 1/2 in place of what it was, under a key of its own.
offset=$(etstream inspect renamed.pte --json | tr -d ' \n' | sed "s/.*\"key\":\"$other\",\"path\":\"[^\"]*\",\"offset\":\([0-9]*\).*/\1/")
cp renamed.pte changed.pte
printf '\0\0\0\077' | dd of=changed.pte bs=1 seek=$((offset + 44)) conv=notrunc status=none
try etstream diff "$program" changed.pte
try etstream diff "$program" changed.pte --atol 1
try etstream diff "$program" changed.pte --atol 3
printf '{"%s": "linear.weight"}' $weight >names.json
try etstream diff "$program" changed.pte --atol 3 --names names.json --json | sed "s|$GOLDEN|GOLDEN|"
# A delegate has other data than the keys and their weights.
cp "$program" flags.pte
printf '\3' | dd of=flags.pte bs=1 seek=2128 conv=notrunc status=none
try etstream diff "$program" flags.pte
# A tolerance covers only differences of weights.
LC_ALL=C sed 's/aten::embedding/aten::EMBEDDING/' changed.pte >operator.pte
etstream diff "$program" operator.pte --atol 3 | head -n 1
LC_ALL=C sed 's/XnnpackBackend/XnnpackBackenD/' changed.pte >backend.pte
etstream diff "$program" backend.pte --atol 3 | head -n 1
try etstream diff "$program" changed.pte --atol -1
try etstream diff "$program" changed.pte --atol much
try etstream diff "$program" changed.pte --rtol nan
try etstream diff "$program" changed.pte --names missing.json
# Tensor data and checkpoints are compared too.
cp "$GOLDEN"/tensor_data/expected.ptd changed.ptd
printf '\011' | dd of=changed.ptd bs=1 seek=$(($(stat -c %s changed.ptd) - 4)) conv=notrunc status=none
try etstream diff "$GOLDEN"/tensor_data/expected.ptd changed.ptd
try etstream diff "$GOLDEN"/tensor_data/expected.ptd changed.ptd --atol 1
try etstream diff "$GOLDEN"/tensor_data/expected.ptd changed.ptd --atol 1e6
# An element that is NaN in only one file has no difference that could be the largest.
header='{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
printf '\70\0\0\0\0\0\0\0%s\0\0\200\77\0\0\200\77' "$header" >ones.safetensors
printf '\70\0\0\0\0\0\0\0%s\0\0\200\77\0\0\300\177' "$header" >nan.safetensors
try etstream diff ones.safetensors nan.safetensors --atol 10
# A tolerance that is not given is none.
header='{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  '
printf '\70\0\0\0\0\0\0\0%s\0\0\200\77' "$header" >one.safetensors
printf '\70\0\0\0\0\0\0\0%s\0\0\300\77' "$header" >more.safetensors
try etstream diff one.safetensors more.safetensors --atol 0.4
try etstream diff one.safetensors more.safetensors --rtol 0.4
