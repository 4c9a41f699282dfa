# SPDX-License-Identifier: BSD-3-Clause
# JSON to flatbuffers and back, with flatc's arguments and names of files.
cat >part.fbs <<'SCHEMA'
table Part { name: string; size: int = 7; }
SCHEMA
mkdir included out && mv part.fbs included
cat >model.fbs <<'SCHEMA'
include "part.fbs";
table Model { parts: [Part]; data: [ubyte] (force_align: 64); }
root_type Model;
file_identifier "MODL";
file_extension "mdl";
SCHEMA
echo '{ parts: [{name: "one"}, {size: 8}], data: [1, 2] } // as flatc takes it' >a.json
echo '{}' >b.json

try etstream compile --binary -I included -o out model.fbs a.json b.json
ls out
head -c 8 out/a.mdl | tail -c 4 && echo
try etstream decompile --json --strict-json --defaults-json -I included -o out model.fbs -- out/a.mdl out/b.mdl
cat out/a.json out/b.json
try etstream decompile -I included -o - model.fbs out/a.mdl | head -n 4
try etstream compile -I included model.fbs a.json -o other.mdl
cmp other.mdl out/a.mdl && echo "the same in a file of any name"
try etstream compile -I included model.fbs a.json -o new/folder/
ls new/folder

echo "--- what is refused"
try etstream compile model.fbs a.json -o out
try etstream compile -I included model.fbs a.json b.json -o other.mdl
try etstream compile -I included model.fbs a.json -o a.json
printf '{\n"nothing": 1}' >wrong.json
try etstream compile -I included model.fbs wrong.json -o out
try etstream decompile -I included --size-prefixed model.fbs out/a.mdl -o -
try etstream decompile -I included model.fbs model.pte -o -
try etstream decompile -I included model.fbs none.mdl -o -
try etstream compile -I included model.fbs a.json -o a.json/
truncate -s 2G large.mdl
try etstream decompile -I included model.fbs large.mdl -o -
try etstream compile model.fbs
ls out
