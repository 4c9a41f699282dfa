cp "$GOLDEN"/delegated_program/program.pte model.pte
etstream inspect model.pte | sed -n '/^data of delegates/,/^$/p'
etstream inspect model.pte --json | sed -n '/"payloads": \[/,/^  \]/p'
try etstream extract model.pte "forward/delegate 0" -o payload
try etstream extract model.pte "forward/delegate 0/graph" -o graph
cmp graph <(tail -c +33 payload | head -c 680) && echo "the graph is behind the header"
head -c 8 graph | tail -c 4 && echo
etstream extract model.pte "forward/delegate 0/constants" -o - | wc -c
etstream inspect model.pte --html page.html
grep -o "forward/delegate 0/graph" page.html
grep -o '"name":"model.pte".*"kinds":\[[^]]*' page.html
# Pieces that are not there are refused.
try etstream extract model.pte "forward/delegate 1" -o other
try etstream extract model.pte "forward/delegate 0/weights" -o other
ls -A
# Payloads are moved into the flatbuffer and back.
etstream pte model.pte --delegates inline -o inline.pte
etstream inspect inline.pte | grep 'segments.*delegate'
etstream pte inline.pte -o kept.pte && cmp inline.pte kept.pte && echo "as it was"
etstream pte inline.pte --delegates segments -o segments.pte
etstream inspect segments.pte | grep 'segments.*delegate'
