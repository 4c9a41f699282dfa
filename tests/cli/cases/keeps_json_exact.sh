# SPDX-License-Identifier: BSD-3-Clause
# JSON that loses nothing, with data left where it lies.
cat >model.fbs <<'SCHEMA'
enum Kind : byte { SMALL, LARGE }
table Part { name: string; scale: double; kind: Kind; }
table Model { parts: [Part]; data: [ubyte] (force_align: 16); }
root_type Model;
file_identifier "MODL";
file_extension "mdl";
SCHEMA
echo '{"parts": [{"name": "a", "scale": 1e-300, "kind": "LARGE"}, {"scale": "nan"}], "data": [1, 2, 3, 250]}' >a.json
try etstream compile --exact model.fbs a.json -o a.mdl
try etstream decompile --exact model.fbs a.mdl -o -
mkdir folder
try etstream decompile --exact --leave-out 3 model.fbs a.mdl -o folder/b.json
grep file folder/b.json
try etstream compile --exact model.fbs folder/b.json -o b.mdl
cmp a.mdl b.mdl && echo "the same again"
try etstream compile --exact --python-order model.fbs folder/b.json -o c.mdl
cmp -s a.mdl c.mdl || echo "another order"

echo "--- a schema that FlatBuffers' parser refuses"
echo 'table N {} table T { n: [ubyte] (nested_flatbuffer: "N"); d: [ubyte] (force_align: 64); } root_type T;' >t.fbs
echo '{"d": [1]}' >t.json
try etstream compile --exact t.fbs t.json -o ./
try etstream compile t.fbs t.json -o t.bin
wc -c <t.bin

echo "--- what is refused"
echo '{"parts": [{"nam": "a"}]}' >wrong.json
try etstream compile --exact model.fbs wrong.json -o wrong.mdl
try etstream compile --python-order model.fbs a.json -o wrong.mdl
try etstream decompile --leave-out 3 model.fbs a.mdl -o -
try etstream decompile --exact model.fbs model.pte -o -
try etstream decompile --exact model.fbs a.mdl -o a.mdl
ls
