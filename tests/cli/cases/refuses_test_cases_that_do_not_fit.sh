# Errors that ExecuTorch's reader leaves unchecked are found, and all errors of a file are reported at once. Nothing is
# written.
cases() { cat >given.json; try etstream bundle model.pte --cases given.json -o out.bpte; }
cases <<<'{"backward": [{"inputs": [{"npy": "image_0.npy"}], "expected_outputs": [{"npy": "scores_0.npy"}]}]}'
cases <<<'{"forward": [{"inputs": [], "expected_outputs": [{"npy": "scores_0.npy"}, {"npy": "scores_0.npy"}]}]}'
cases <<<'{"forward": [{"inputs": [{"npy": "scores_0.npy"}], "expected_outputs": [{"npy": "image_0.npy"}]}, {"inputs": [1], "expected_outputs": [null]}]}'
cases <<<'{"forward": [{"inputs": [{"npy": "image_0.npy"}], "expected_outputs": [{"npy": "scores_0.npy", "dim_order": [1, 0]}]}]}'
cases <<<'{"forward": [{"inputs": [{"npy": "image_0.npy", "dim_order": [0, 2, 3, 1]}]}]}'
rm out.bpte
try etstream bundle cases.json --cases cases.json -o out.bpte
ls out.bpte
try etstream bundle cases.json --cases cases.json -o out.bpte --unchecked
