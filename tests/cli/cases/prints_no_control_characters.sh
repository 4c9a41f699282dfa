# Neither the content nor the name of a file can control the terminal.
escape=$(printf '\033[31m')
name="red$escape.pte"
cp model.pte "$name"
cat >wild.json <<'END'
{"\u001b[2Jforward\u009b0m": [{"inputs": []}], "two\nlines\u007f": []}
END
try etstream bundle "$name" --cases wild.json --unchecked -o "out$escape.bpte"
try etstream inspect "out$escape.bpte" | tail -4
try etstream verify "out$escape.bpte"
try etstream verify "$name"
try etstream inspect "$name" | head -1
try etstream inspect --json "out$escape.bpte" | grep '"method"'
try etstream pte "$name" --as-of 1.2 -o "copy$escape.pte" --dry-run | head -2
try etstream verify "no such
file$escape"
try etstream diff "$name" "no$escape"
{
  etstream inspect "out$escape.bpte"
  etstream verify "out$escape.bpte"
  etstream inspect --json "out$escape.bpte"
} 2>&1 | LC_ALL=C grep -c "$(printf '[\033\177\233]')"
