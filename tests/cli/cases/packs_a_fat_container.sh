# fat packs files under names, and gives them back; verify looks into those that it knows.
printf 'only its backend knows' >blob
try etstream fat portable=model.pte npu=blob again=model.pte -o model.fat
try etstream extract model.fat portable -o out.pte && cmp out.pte model.pte && echo "the same program"
etstream extract model.fat npu -o - && echo
try etstream verify model.fat
try etstream inspect model.fat
# Each payload lies where it can be mapped, and none is shared.
try etstream fat portable=model.pte npu=blob --align 16384 -o aligned.fat
try etstream inspect aligned.fat
try etstream diff model.fat aligned.fat
try etstream fat portable=model.pte again=model.pte --no-dedup -o twice.fat
try etstream fat portable=model.pte npu=blob --dry-run
# A damaged payload is reported, and commands that fail leave nothing.
head -c 20000 model.pte >short.pte
etstream fat short=short.pte -o short.fat >/dev/null
try etstream verify short.fat
try etstream extract model.fat vulkan -o other
try etstream extract model.pte portable -o other
try etstream fat model.pte -o other
try etstream fat =model.pte -o other
try etstream fat a=model.pte a=blob -o other
try etstream fat a=model.pte -o model.pte
try etstream fat a=model.pte
try etstream fat a=missing -o other
try etstream fat
try etstream ptd model.fat -o other
ls -A | grep -v npy
