# SPDX-License-Identifier: BSD-3-Clause inspect shows the memory that a program needs on a board, and writes the sizes of
# pools.
try etstream inspect model.pte --budget
try etstream inspect model.pte --budget --format c
etstream bundle model.pte --cases cases.json -o model.bpte >/dev/null
try etstream inspect model.bpte --budget --json
etstream pte model.pte --constants-to budget.ptd -o thin.pte >/dev/null
try etstream inspect thin.pte --budget

echo "--- what is refused"
etstream pte model.pte --constants-to weights.ptd -o small.pte >/dev/null
try etstream inspect weights.ptd --budget
try etstream inspect model.pte --budget --format dot
try etstream inspect model.pte --budget --graph forward
try etstream inspect model.pte --format c
try etstream inspect model.pte --budget --json --format c
