# The main job gives equal bytes to a file, over an existing one, through a pipe and without sync.
try etstream bundle model.pte --cases cases.json -o out.bpte
try etstream bundle model.pte --cases cases.json -o again.bpte --no-sync
try etstream bundle model.pte --cases cases.json -o again.bpte
etstream bundle model.pte --cases cases.json -o - | cmp - out.bpte
cmp out.bpte again.bpte
mkdir elsewhere
cd elsewhere
try etstream bundle ../model.pte --cases ../cases.json -o out.bpte
cmp out.bpte ../out.bpte
