cp "$GOLDEN/tensor_data/expected.ptd" weights.ptd
echo '{"scale": ["a", "b"], "*.weight": "layers.*.w", "no.*": null, "none": null, "packed*": null}' >rules.json
try etstream ptd weights.ptd --map rules.json -o renamed.ptd
try etstream inspect renamed.ptd
try etstream ptd weights.ptd --map rules.json -o renamed.ptd --only 'layers.*'
try etstream inspect renamed.ptd
echo '{"scale": null, "no.*": null}' >rules.json
try etstream ptd weights.ptd --map rules.json -o renamed.ptd
try etstream ptd weights.ptd --map rules.json -o renamed.ptd --dry-run
echo '{"scale": "a", "conv.*": "a"}' >rules.json
try etstream ptd weights.ptd --map rules.json -o other.ptd
echo '{"scale": "a", "scale": "b"}' >rules.json
try etstream ptd weights.ptd --map rules.json -o other.ptd
try etstream ptd weights.ptd --map gpt2 -o other.ptd
try etstream ptd weights.ptd --head-dim 4 -o other.ptd
test ! -e other.ptd && echo not there
