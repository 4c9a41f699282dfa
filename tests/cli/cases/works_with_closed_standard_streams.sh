# A file never takes the place of a standard stream that the parent closed.
etstream bundle model.pte --cases cases.json -o open.bpte >/dev/null 2>&1
etstream bundle model.pte --cases cases.json -o closed.bpte <&- >&- 2>&-
echo "exit code $?"
cmp open.bpte closed.bpte
rm closed.bpte
etstream bundle model.pte --cases cases.json -o closed.bpte --json >&-
echo "exit code $?"
cmp open.bpte closed.bpte
etstream bundle model.pte --cases cases.json -o - >&-
echo "exit code $?"
# Output that can't be printed is a failure, whatever it is.
etstream inspect --json model.pte >&-
echo "exit code $?"
for asked in --version 'pte --help'; do
  etstream $asked >/dev/full
  echo "exit code $?"
done
