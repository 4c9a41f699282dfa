# Each command that reads a program verifies it first. If it has errors, the message has the first of them.
printf '{"execution_plan": [{"name": "forward", "values": [], "inputs": [5, 6], "outputs": [7, 8, 9], "chains": [],
  "operators": [], "delegates": [], "non_const_buffer_sizes": [0]}]}' >bad.json
etstream compile "$GOLDEN/../../schema/program.fbs" bad.json -o bad.pte
for command in 'pte bad.pte -o out' 'pte bad.json -o out' 'share bad.pte model.pte --dry-run' 'ptd bad.pte -o out' \
  'bundle bad.pte --metadata a=1 --cases cases.json -o out' 'verify bad.pte'; do
  echo "etstream $command"
  try etstream $command
done
ls out
