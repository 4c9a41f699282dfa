# SPDX-License-Identifier: BSD-3-Clause
# The elements of test tensors are in the method's order of dimensions, or in the one that is asked for.
etstream decompile --exact "$GOLDEN/../../schema/program.fbs" model.pte -o model.json 2>/dev/null
sed 's/"dim_order": "AAE="/"dim_order": "AQA="/' model.json >columns.json  # [0, 1] is base64, and [1, 0]
etstream pte columns.json --segments-from model.pte -o columns.pte >/dev/null
etstream inspect columns.pte | grep "in dim_order"
etstream bundle columns.pte --cases cases.json -o columns.bpte
etstream inspect columns.bpte | grep "case.*in dim_order"
try etstream extract columns.bpte --cases parts
cat parts/cases.json
etstream bundle columns.pte --cases parts/cases.json -o again.bpte >/dev/null
cmp columns.bpte again.bpte && echo "the same bundle"
sed 's/"scores_0.npy"/"scores_0.npy", "dim_order": [0, 1]/' cases.json >rows.json
try etstream bundle columns.pte --cases rows.json -o rows.bpte
