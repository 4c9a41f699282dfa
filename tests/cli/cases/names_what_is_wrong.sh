# These are errors that a person can make. None of the commands writes anything.
bundle() { try etstream bundle "$@"; }
cases() { cat >given.json; bundle model.pte --cases given.json -o out.bpte; }
bundle missing.pte --cases cases.json -o out.bpte
bundle . --cases cases.json -o out.bpte
bundle model.pte --cases missing.json -o out.bpte
bundle cases.json --cases cases.json -o out.bpte
bundle model.pte --cases model.pte -o out.bpte
bundle model.pte --cases cases.json -o missing/out.bpte
bundle model.pte --cases cases.json -o .
bundle model.pte --cases cases.json -o model.pte
bundle model.pte --cases cases.json -o ./cases.json
bundle model.pte --cases cases.json -o out.bpte --program-alignment 48
bundle model.pte --cases cases.json -o out.bpte --program-alignment 131072
printf 123456789012 >twelve.bin
cases <<<'{"forward": [{"inputs": [{"npy": "missing.npy"}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"npy": "twelve.bin"}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"raw": "twelve.bin", "dtype": "float32", "shape": [2, 2]}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"raw": "twelve.bin", "dtype": "flaot32", "shape": [3]}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"raw": "twelve.bin", "shape": [3]}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"raw": "twelve.bin", "dtype": "float32", "shape": [3], "dim_order": [1]}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"safetensors": "twelve.bin", "name": "x"}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"npz": "x.npz"}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [{"double": "infinity"}], "expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [99999999999999999999], "expected_outputs": []}]}'
cases <<<'{"forward": [{"expected_outputs": []}]}'
cases <<<'{"forward": [{"inputs": [], "outputs": []}]}'
cases <<<'{"forward": [], "forward": []}'
cases <<<'[{"method": "forward"}]'
cases <<<'{"forward": [{"inputs": ["x.npy"], "expected_outputs": []}]}'
cases <<<'3'
cases <<<'{"forward": ['
ls -A
# Words of the library in a file's name stay there.
try etstream verify 'x; head_dim.pte'
