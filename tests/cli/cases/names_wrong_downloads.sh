# Every command names the kind of a file that a download gave in place of a model, whatever it expects.
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4943000480\n' 0 >pointer.safetensors
printf '<!DOCTYPE html><html><body>Access denied</body></html>' >page.pte
printf '{"error":"Repository not found"}' >error.ptd
printf '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>' >denied.bpte
printf 'Entry not found' >text.gguf
printf '\037\213\010\000%040d' 0 >model.pte.gz
: >empty.pte
for file in pointer.safetensors page.pte error.ptd denied.bpte text.gguf model.pte.gz empty.pte; do
  try etstream verify $file
done
for command in 'inspect page.pte' 'diff page.pte model.pte' 'pte page.pte -o out' 'ptd page.pte -o out' \
  'ptd error.ptd -o out' 'pte error.ptd -o out' 'ptd pointer.safetensors --to safetensors -o out' \
  'extract pointer.safetensors named/x -o out' 'extract denied.bpte program -o out' \
  'convert denied.bpte --to segmented -o out' 'bundle page.pte --cases cases.json -o out' \
  'bundle model.pte --cases page.pte -o out' 'verify model.pte error.ptd' \
  'pte model.pte --constants-from pointer.safetensors -o out' 'share page.pte model.pte --dry-run'; do
  echo "etstream $command"
  try etstream $command
done
printf '{"forward": [{"inputs": [{"npy": "page.pte"}]}]}' >cases.json
try etstream bundle model.pte --cases cases.json -o out
ls out
