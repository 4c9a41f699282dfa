cp "$GOLDEN"/delegated_program/program.pte model.pte
weight=7a3c06cfb2fbaf0c864167c11e30fda1f77447e3998d704800da475236c7d7d3
bias=0e46b0f0450941b9cf7ce388df558a92c5d042dae3f9a46a64c946ea56f25415
named_data() { sed -n '/^named data/,/^$/p'; }
etstream inspect model.pte | named_data
printf '{"%s": "linear.weight", "%s": ["linear.bias", "tied.bias"]}' $weight $bias >names.json
etstream inspect model.pte --names names.json | named_data
# Names beside the program need no option.
cp names.json model.names.json
etstream inspect model.pte | named_data
etstream inspect model.pte --json | sed -n '/"named_data": \[/,/^  \]/p'
etstream inspect model.pte --html page.html
grep -c "bias of XNNFullyConnected 0[^]]*,\"linear.bias, tied.bias\"" page.html
# Data that the program lacks is listed too, and tensor data has the names.
etstream pte model.pte --constants-to weights.ptd -o without.pte >/dev/null
etstream inspect without.pte --names names.json | named_data
etstream inspect weights.ptd --names names.json | named_data
printf '{"5f26322efb8e2f614d9ad1dac97c8785243350820ae509a5640e8b661c9ea26c": "first"}' >first.json
etstream inspect weights.ptd --names first.json --names names.json --json | grep -e '"key"' -e '"name": "first"' -e '"name": "linear'
etstream inspect weights.ptd --names names.json --html page.html
grep -c 'linear.bias, tied.bias' page.html
grep -o '"contents":.*,"duplicates"' page.html
printf '{"a": 1}' >bad.json
try etstream inspect model.pte --names bad.json
try etstream inspect model.pte --budget --names names.json
try etstream inspect model.pte --graph forward --names names.json
printf '{"a": ["x", {}]}' >model.names.json
try etstream inspect model.pte
printf '["a"]' >model.names.json
try etstream diff model.pte without.pte
