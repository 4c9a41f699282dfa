cp "$GOLDEN/tensor_data/expected.ptd" weights.ptd
try etstream verify weights.ptd
try etstream inspect weights.ptd
try etstream extract weights.ptd named/conv.weight -o conv.bin
wc -c conv.bin
try etstream extract weights.ptd named/bias -o bias.bin
try etstream extract model.pte named/bias -o bias.bin
try etstream extract weights.ptd -o bias.bin
head -c 700 weights.ptd >short.ptd
try etstream verify short.ptd
