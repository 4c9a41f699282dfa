# SPDX-License-Identifier: BSD-3-Clause JSON loses nothing, and data stays where it lies.
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
etstream decompile --exact --leave-out 3 model.fbs a.mdl -o - | grep file | sed "s|$(pwd -P)|HERE|"
try etstream compile --exact model.fbs folder/b.json -o b.mdl --max-disk 10 2>&1 | cut -d ' ' -f 1-4
try etstream compile --exact model.fbs folder/b.json -o b.mdl
cmp a.mdl b.mdl && echo "the same again"

echo "--- a schema that FlatBuffers' parser refuses"
echo 'table N {} table T { n: [ubyte] (nested_flatbuffer: "N"); d: [ubyte] (force_align: 64); } root_type T;' >t.fbs
echo '{"d": [1]}' >t.json
try etstream compile --exact t.fbs t.json -o ./
try etstream compile t.fbs t.json -o t.bin
wc -c <t.bin

echo "--- fields that are deprecated"
cat >old.fbs <<'SCHEMA'
table Part { id: int; }
union Any { Part }
table Old { a: int; old: [ushort] (deprecated); gone: int (deprecated); part: Part (deprecated);
            any: Any (deprecated); name: string (deprecated); b: int; last: double = 1 (deprecated); }
root_type Old;
SCHEMA
echo '{"a": 1, "old": [1, 2, 3], "gone": 7, "part": {"id": 3}, "any_type": "Part", "any": {"id": 4},
       "name": "x", "b": 2, "last": "nan"}' >old.json
try etstream compile --exact old.fbs old.json -o old.bin
try etstream decompile --exact --raw-binary --defaults-json old.fbs old.bin -o again.json
cat again.json
etstream compile --exact old.fbs again.json -o again.bin
cmp old.bin again.bin && echo "the same again"

echo "--- fields that the schema lacks, a value of no type"
echo 'table New { a: int; } root_type New;' >new.fbs
try etstream decompile --exact --raw-binary new.fbs old.bin -o -
echo 'table Part { id: int; } union Any { Part } table T { any: Any; } root_type T;' >typed.fbs
echo 'table Part { id: int; } table T { any_type: ubyte; any: Part; } root_type T;' >untyped.fbs
echo '{"any": {"id": 4}}' >any.json
etstream compile --exact untyped.fbs any.json -o any.bin
try etstream decompile --exact --raw-binary typed.fbs any.bin -o -

echo "--- what decompile writes without --exact, as flatc does"
cat >inf.json <<'JSON'
{"execution_plan": [{"name": "f", "container_meta_type": {}, "inputs": [], "outputs": [0], "chains": [{"instructions": []}],
  "operators": [], "delegates": [], "non_const_buffer_sizes": [0],
  "values": [{"val_type": "Double", "val": {"double_val": -Infinity}}, {"val_type": "Double", "val": {"double_val": NaN}},
             {"val_type": "Double", "val": {"double_val": "-nan"}}]}]}
JSON
etstream pte inf.json -o inf.pte 2>/dev/null
for way in '' --strict-json; do
  etstream decompile $way "$GOLDEN/../../schema/program.fbs" inf.pte -o shown.json
  grep double_val shown.json
  etstream pte shown.json -o again.pte >/dev/null 2>&1 && cmp again.pte inf.pte && echo "the same again"
done

echo "--- what is behind the flatbuffer is not in the JSON"
try etstream decompile --exact "$GOLDEN/../../schema/program.fbs" model.pte -o shown.json
try etstream decompile --exact "$GOLDEN/../../schema/program.fbs" inf.pte -o shown.json
head -c 32 /dev/zero >>inf.pte  # data of zeros, which no header tells of
try etstream decompile --exact "$GOLDEN/../../schema/program.fbs" inf.pte -o shown.json
rm inf.* again.pte shown.json

echo "--- what is refused"
echo '{"parts": [{"nam": "a"}]}' >wrong.json
try etstream compile --exact model.fbs wrong.json -o wrong.mdl
try etstream decompile --leave-out 3 model.fbs a.mdl -o -
try etstream decompile --exact model.fbs model.pte -o -
try etstream decompile --exact model.fbs a.mdl -o a.mdl
ls
