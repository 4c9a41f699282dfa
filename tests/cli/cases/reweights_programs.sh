# reweight puts the weights of another checkpoint into a program, as an export with these weights does.
cp "$GOLDEN/delegated_program/program.pte" .
checkpoint() { # FILE HEADER, and the data on standard input
  local length
  length=$(printf '\\x%02x' $((${#2} & 255)) $((${#2} >> 8)))
  { printf "$length\0\0\0\0\0\0%s" "$2"; cat; } >"$1"
}
piece() { dd if=program.pte bs=1 skip="$1" count="$2" status=none; }
change() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
header='{"embedding.weight":{"dtype":"F32","shape":[5,3],"data_offsets":[0,60]},"linear.weight":{"dtype":"F32","shape":[3,4],"data_offsets":[60,108]},"linear.bias":{"dtype":"F32","shape":[3],"data_offsets":[108,120]}}'
begin=$((8 + ${#header}))
{ piece 1920 60; piece 2816 48; piece 2944 12; } | checkpoint old.safetensors "$header"
cp old.safetensors new.safetensors
change new.safetensors "$begin" '\0\0\300\077'
change new.safetensors $((begin + 64)) '\0\0\300\300'
change new.safetensors $((begin + 116)) '\0\0\40\101'
try etstream reweight program.pte --was old.safetensors --now new.safetensors -o new.pte
stat -c %s program.pte new.pte
try etstream verify new.pte
try etstream explain new.pte --by new.safetensors
try etstream diff program.pte new.pte
# The old weights bring the old program back.
try etstream reweight new.pte --was new.safetensors --now old.safetensors -o back.pte --json
cmp back.pte program.pte && echo "as it was"
try etstream reweight program.pte --was old.safetensors --now new.safetensors --dry-run
try etstream reweight program.pte --was old.safetensors --now new.safetensors --dry-run --json
etstream reweight program.pte --was old.safetensors --now new.safetensors -o - | cmp - new.pte && echo "the same"

echo "--- weights in files of their own"
echo '{"1": "embedding.weight"}' >keys.json
etstream pte program.pte --constants-to weights.ptd --keys keys.json -o thin.pte >/dev/null
etstream pte new.pte --constants-to expected.ptd --keys keys.json -o expected.pte >/dev/null
try etstream reweight thin.pte weights.ptd --was old.safetensors --now new.safetensors -o thin_new.pte --weights-to new.ptd
cmp thin_new.pte expected.pte && cmp new.ptd expected.ptd && echo "as moved out of the new program"
try etstream verify thin_new.pte new.ptd
try etstream reweight thin.pte weights.ptd --was old.safetensors --now new.safetensors -o thin_new.pte --weights-to new.ptd --json
try etstream reweight thin.pte weights.ptd --was old.safetensors --now new.safetensors --dry-run
# Names of tensors that are hashes change with what they name.
etstream pte program.pte --constants-to hashes.ptd -o hashed.pte >/dev/null
etstream pte new.pte --constants-to expected_hashes.ptd -o expected_hashed.pte >/dev/null
try etstream reweight hashed.pte hashes.ptd --was old.safetensors --now new.safetensors -o hashed_new.pte --weights-to hashes_new.ptd
cmp hashed_new.pte expected_hashed.pte && cmp hashes_new.ptd expected_hashes.ptd && echo "as moved out of the new program"

both='--was old.safetensors --now new.safetensors'
echo "--- what nothing explains stays, if its name is given"
{ piece 1920 60; piece 2816 48; } | checkpoint few.safetensors '{"embedding.weight":{"dtype":"F32","shape":[5,3],"data_offsets":[0,60]},"linear.weight":{"dtype":"F32","shape":[3,4],"data_offsets":[60,108]}}'
few='--was few.safetensors --now few.safetensors'
bias="bias of XNNFullyConnected 0 in method 'forward', delegate 0 (XnnpackBackend)"
try etstream reweight program.pte $few -o kept.pte
try etstream reweight program.pte $few --keep "$bias" -o kept.pte
cmp kept.pte program.pte && echo "as it was"
try etstream reweight program.pte $few --keep "$bias" -o kept.pte --json
etstream reweight program.pte $few --keep "$bias" -o - | cmp - program.pte && echo "the same"
try etstream reweight program.pte $few --keep "$bias" --keep bias -o none.pte
try etstream reweight program.pte $both --keep "$bias" -o none.pte

echo "--- what is refused, and leaves nothing"
refused() { try etstream reweight "$@" -o none.pte; }
try etstream reweight program.pte $both
try etstream reweight program.pte --was old.safetensors -o none.pte
try etstream reweight program.pte $both -o program.pte
try etstream reweight program.pte $both -o new.safetensors
try etstream reweight program.pte $both -o no/none.pte
refused thin.pte weights.ptd $both
refused thin.pte weights.ptd $both --weights-to weights.ptd
refused thin.pte weights.ptd $both --weights-to none.pte
refused thin.pte weights.ptd $both --weights-to a.ptd --weights-to b.ptd
refused program.pte $both --weights-to none.ptd
try etstream reweight thin.pte weights.ptd $both --dry-run --weights-to a.ptd --weights-to b.ptd
try etstream reweight program.pte $both --dry-run --weights-to none.ptd
refused thin.pte $both
etstream bundle model.pte --cases cases.json -o model.bpte >/dev/null
refused model.bpte $both
refused program.pte $both --max-disk 2K
refused program.pte --was new.safetensors --now old.safetensors
refused model.pte $both
refused program.pte --was old.safetensors --now few.safetensors
{ piece 1920 60; piece 2816 48; piece 2944 12; } | checkpoint shape.safetensors "${header/3,4/4,3}"
refused program.pte --was old.safetensors --now shape.safetensors
refused program.pte --was missing.safetensors --now new.safetensors
{ piece 1920 60; piece 1920 60; piece 2816 48; piece 2944 12; } | checkpoint twice.safetensors '{"a":{"dtype":"F32","shape":[5,3],"data_offsets":[0,60]},"b":{"dtype":"F32","shape":[5,3],"data_offsets":[60,120]},"linear.weight":{"dtype":"F32","shape":[3,4],"data_offsets":[120,168]},"linear.bias":{"dtype":"F32","shape":[3],"data_offsets":[168,180]}}'
cp twice.safetensors differ.safetensors
change differ.safetensors $(($(stat -c %s differ.safetensors) - 180)) '\0\0\300\077'
refused program.pte --was twice.safetensors --now differ.safetensors
ls
