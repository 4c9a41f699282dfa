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
# A report that can't be printed once outputs are there is a warning: the exit code says that they are.
for to in '-o new.pte' '--constants-to new.ptd -o new.pte'; do
  etstream pte model.pte $to --json >/dev/full
  echo "exit code $?, $(ls -m new.*)"
done
etstream share model.pte same=model.pte --weights-to all.ptd --out-dir made >/dev/full
echo "exit code $?, $(ls -m all.ptd made/*)"
# A reader that has enough of a report ends it, as it ends other programs.
for command in inspect 'pte --dry-run'; do
  { sleep 0.2; etstream $command model.pte --json; echo "exit code $?" >&2; } | true
done
