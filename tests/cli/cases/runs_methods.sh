# A script answers here in the place of Python; tests/peer runs methods on ExecuTorch.
cat >python <<'SCRIPT'
#!/bin/sh
echo '{"ready": true}'
while read -r task; do
  case $task in
    *'"copy":false'*'"fill":"zeros"'*) echo '{"end": "signal", "signal": "SIGSEGV", "reason": "assert failed"}' ;;
    *'"fill":"ones"'*) echo '{"end": "refused", "error": 18, "reason": "Check failed", "failed_at": [0, 1], "loaded": true}' ;;
    *'"fill":"random","inputs"'*'"seconds":9,"seed":7'*) echo '{"end": "out_of_time"}' ;;
    *'"outputs":true'*) echo '{"end": "ok", "outputs": [{"dtype": "float32", "sizes": [1, 9], "offset": 0, "size": 36}]}' ;;
    *) echo '{"end": "ok"}' ;;
  esac
done
SCRIPT
printf '#!/bin/sh\necho '\''{"missing": "ModuleNotFoundError: No module named executorch"}'\''\n' >bare
chmod +x python bare
try etstream verify model.pte --run --python ./python --run-seconds 9 --seed 7
etstream bundle model.pte --cases cases.json -o model.bpte --no-sync >/dev/null
try etstream verify model.bpte --run --python ./python
# An output may be a number.
sed 's/{"dtype".* 36}/{"double": "0x1.8p+1"}/' python >number
chmod +x number
try etstream verify model.bpte --run --python ./number
# There is no ExecuTorch, there is no Python, or the program is no Python.
try etstream verify model.pte --run --python ./bare
try etstream verify model.pte --run --python ./missing
try etstream verify model.pte --run --python true
# Some files can't be run, and some options need a run.
etstream pte model.pte --constants-to w.ptd --split-max-size 20480 -o thin.pte --no-sync >/dev/null
try etstream verify thin.pte w-0*.ptd --run --python ./python
try etstream verify w-00001-of-*.ptd --partial --run --python ./python
sed 's/aten::relu/aten::gelu/' model.pte >other.pte
try etstream verify other.pte --run --python ./missing
try etstream verify model.pte --run --python ./python --run-seconds 0
try etstream verify model.pte --seed 1
try etstream verify model.pte --run --atol -1
