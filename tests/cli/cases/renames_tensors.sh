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
mkdir gpt2
try etstream ptd weights.ptd --map gpt2 -o other.ptd
try etstream ptd weights.ptd --head-dim 4 -o other.ptd
echo '{"no.*": null}' >rules.json
try etstream ptd weights.ptd --map rules.json -o other.ptd
try etstream ptd weights.ptd --map llama -o other.ptd
# Ready-made rules see through what trainers and models with eyes put before the names; "**" crosses dots.
cat >rules.json <<'JSON'
{"scale": "module.lm_head.weight", "linear.weight": "module.model.language_model.layers.0.mlp.up_proj.weight", "**": null}
JSON
try etstream ptd weights.ptd --map rules.json -o module.ptd
try etstream ptd module.ptd --map llama -o known.ptd
try etstream inspect known.ptd
echo '{"module.**": "*"}' >rules.json
try etstream ptd module.ptd --map rules.json -o stripped.ptd
try etstream inspect stripped.ptd
test ! -e other.ptd && echo not there
