# SPDX-License-Identifier: BSD-3-Clause Programs are written with other content: constants outside and back, methods
# dropped, JSON.
try etstream pte model.pte --constants-to weights.ptd -o small.pte
try etstream verify weights.ptd
try etstream inspect weights.ptd
try etstream pte small.pte --constants-from weights.ptd -o back.pte
cmp model.pte back.pte && echo "as it was"
echo '{"1": "first"}' >keys.json
try etstream pte model.pte --constants-to named.ptd --keys keys.json -o named.pte --json
try etstream inspect named.ptd | grep first
etstream pte model.pte --constants-to weights.ptd -o - >piped.pte
cmp small.pte piped.pte && echo "as in a file"
try etstream pte model.pte --strip-stack-traces --strict-alignment -o same.pte
try etstream pte model.pte --constants-to weights.ptd -o out.pte --dry-run
try etstream pte model.pte --constants-to weights.ptd -o out.pte --dry-run --json | grep -c offset

echo "--- what is refused"
try etstream pte model.pte --constants-to new.ptd -o none/out.pte
try etstream pte model.pte --constants-to new.ptd -o new.ptd
try etstream pte model.pte --constants-to new.ptd --constants-from weights.ptd -o out.pte
try etstream pte small.pte --constants-to none.ptd -o out.pte
try etstream pte small.pte --constants-from small.pte -o out.pte
try etstream pte model.pte --constants-from weights.ptd -o out.pte
try etstream pte model.pte --keys keys.json -o out.pte
echo '{"1": 2}' >keys.json
try etstream pte model.pte --constants-to new.ptd --keys keys.json -o out.pte
echo '{"1": "a", "2": "b", "1": "c"}' >keys.json
try etstream pte model.pte --constants-to new.ptd --keys keys.json -o out.pte
echo '["1"]' >keys.json
try etstream pte model.pte --constants-to new.ptd --keys keys.json -o out.pte
try etstream pte model.pte --drop-method forward -o out.pte
try etstream pte model.pte --drop-method backward -o out.pte
try etstream pte model.pte --segments-from model.pte -o out.pte
try etstream pte model.pte --schema none.fbs -o out.pte
echo '{"version": 0, "execution_plans": []}' >model.json
try etstream pte model.json -o out.pte
ls *.ptd *.pte
