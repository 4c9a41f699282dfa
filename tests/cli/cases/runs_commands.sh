# A command that is run has its own words, signals and descriptors, and gives its exit code.
try etstream profile --phase one -- sh -c 'echo "$0 $1"; exit 3' 'a b' --json
try etstream run --spill /var/tmp -- sh -c 'echo "$0 $1"; exit 4' -- --report
for way in 'profile --phase one' 'run --spill /var/tmp' 'run --spill /var/tmp --report'; do
  for signal in PIPE HUP; do
    bash -c "etstream $way -- sh -c 'kill -$signal \$\$; echo it still runs'; exit \$?" 2>/dev/null
    echo "exit code $?"
  done
  try etstream $way -- ./none
  try etstream $way -- /
done
ls /proc/self/fd | wc -l >direct
etstream profile --phase one -- ls /proc/self/fd | wc -l | cmp - direct && echo "no other descriptors"
report() {
  etstream run --report "$@" 2>&1 >/dev/null | sed -E 's/[0-9.]+ (s,|bytes|KiB|MiB|blocks?)| [0-9]+(  in one)/ N\2/g' | tr -s ' '
}
report --spill /var/tmp -- true
report --optional --spill /no/such -- true | sed 's/run: .*;/run: ...;/'
try etstream run --report --optional --spill /no/such -- sh -c 'exit 5' 2>/dev/null
