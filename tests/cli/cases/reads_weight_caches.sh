# A weight cache of XNNPACK, as ExecuTorch's runtime writes it on a device, is listed, checked and compared.
cp "$GOLDEN/delegated_program/program.pte" model.pte
cp "$GOLDEN/xnnpack_cache/cache.xpwc" model.xpwc
try etstream inspect model.xpwc
try etstream inspect model.xpwc --json
try etstream verify model.xpwc
# verify tells which weights of a program are there.
try etstream verify model.pte model.xpwc
try etstream verify model.pte model.xpwc --json
sed 's/7a3c06cf/00000000/' model.xpwc >other.xpwc
try etstream verify model.pte other.xpwc
try etstream verify model.pte other.xpwc --json
try etstream diff model.xpwc other.xpwc
cp model.xpwc same.xpwc
try etstream diff model.xpwc same.xpwc
etstream pte model.pte --constants-to weights.ptd -o thin.pte >/dev/null
try etstream verify thin.pte model.xpwc weights.ptd
try etstream verify thin.pte model.xpwc
try etstream verify model.xpwc model.pte
etstream inspect model.xpwc --html page.html && grep -c 'packed weights' page.html
# A damaged cache is refused, and nothing is taken from one.
head -c 4267 model.xpwc >short.xpwc
try etstream verify short.xpwc
head -c 4264 model.xpwc >version.xpwc && printf '\003\0\0\0' >>version.xpwc
try etstream verify version.xpwc
head -c 4248 model.xpwc >index.xpwc && printf '\377\0\0\0\0\0\0\0' >>index.xpwc && tail -c 12 model.xpwc >>index.xpwc
try etstream verify index.xpwc
try etstream extract model.xpwc --segment 0 -o out
try etstream ptd model.xpwc -o out.ptd
