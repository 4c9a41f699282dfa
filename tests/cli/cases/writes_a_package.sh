# ptn writes a graph and its constants as one package, byte for byte as ExecuTorch does; the others read it.
export SOURCE_DATE_EPOCH=315532800
cp "$GOLDEN"/native_package/{program.ptg,constants.safetensors,expected.ptn} .
try etstream ptn program.ptg --constants constants.safetensors -o model.ptn && cmp model.ptn expected.ptn && echo "as ExecuTorch writes it"
try etstream verify model.ptn
try etstream inspect model.ptn
try etstream inspect --duplicates model.ptn
try etstream extract model.ptn graph -o out.ptg && cmp out.ptg program.ptg && echo "the same graph"
etstream extract model.ptn named/again -o - | od -An -f
try etstream ptd model.ptn -o model.ptd
# A package is written again, with its constants where they can be mapped.
try etstream ptn model.ptn --align 4096 -o aligned.ptn
try etstream inspect aligned.ptn
try etstream diff model.ptn aligned.ptn
try etstream ptn aligned.ptn -o again.ptn && cmp again.ptn model.ptn && echo "as before"
try etstream ptn program.ptg --constants constants.safetensors --mutable again -o apart.ptn
try etstream diff model.ptn apart.ptn
sed 's/forward/farword/' program.ptg >other.ptg && etstream ptn other.ptg --constants constants.safetensors -o other.ptn
try etstream diff model.ptn other.ptn
rm other.ptg other.ptn
try etstream ptn program.ptg --constants constants.safetensors --dry-run
# Damage is reported, and commands that fail leave nothing.
printf 'x' | dd of=apart.ptn bs=1 seek=1000 conv=notrunc status=none
try etstream verify apart.ptn
try etstream ptn program.ptg -o other
try etstream ptn program.ptg --constants constants.safetensors --only 's*' -o other
try etstream ptn program.ptg --constants constants.safetensors --mutable missing -o other
try etstream ptn program.ptg --constants constants.safetensors --align 3 -o other
try etstream ptn model.pte --constants constants.safetensors -o other
try etstream ptn model.ptn -o model.ptn
try etstream ptn program.ptg --constants constants.safetensors
try etstream extract model.ptn segments/0 -o other
env -u SOURCE_DATE_EPOCH etstream ptn model.ptn -o now.ptn >now.txt && etstream verify now.ptn >now.txt && echo "of the time of day"
rm -f now.ptn now.txt
SOURCE_DATE_EPOCH=soon try etstream ptn model.ptn -o other
ls -A | grep -v npy
