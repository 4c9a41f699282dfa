# SPDX-License-Identifier: BSD-3-Clause
# A program and the tensor data files that it is to run with.
etstream pte model.pte --constants-to weights.ptd -o small.pte 2>/dev/null
etstream bundle small.pte --cases cases.json -o small.bpte >/dev/null
try etstream verify small.pte
try etstream verify small.pte weights.ptd
try etstream verify small.bpte weights.ptd
try etstream verify small.pte weights.ptd --json
# A file may have the name of a subcommand.
cp weights.ptd inspect
try etstream verify small.pte inspect
echo "--- what does not fit"
cp "$GOLDEN/tensor_data/expected.ptd" other.ptd
try etstream verify small.pte other.ptd
try etstream verify small.pte weights.ptd other.ptd
try etstream verify small.pte weights.ptd other.ptd weights.ptd
etstream pte "$GOLDEN/delegated_program/program.pte" --constants-to xnnpack.ptd -o xnnpack.pte 2>/dev/null
try etstream verify xnnpack.pte other.ptd --json
try etstream verify "$GOLDEN/delegated_program/program.pte" xnnpack.ptd 2>&1 | sed "s|$GOLDEN|GOLDEN|"
echo "--- what is no pair"
try etstream verify weights.ptd other.ptd
try etstream verify small.pte model.pte
try etstream verify small.pte missing.ptd
head -c 700 weights.ptd >short.ptd
try etstream verify small.pte short.ptd
