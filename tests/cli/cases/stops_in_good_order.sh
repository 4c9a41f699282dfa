# After Ctrl-C while writing, the process ends by the signal, the destination is as it was, and nothing is left beside
# it.
cp model.pte large.pte
truncate -s 1900M large.pte
echo old >out.bpte
set -m  # without this, a command in the background would ignore Ctrl-C
stop() { # SIGNAL COMMAND...
  "${@:2}" &
  until ls -A | grep -q '[.]tmp$'; do sleep 0.01; done
  kill -"$1" $!
  wait $!
  echo "exit code $?"
}
for signal in INT TERM HUP; do stop $signal etstream bundle large.pte --cases cases.json -o out.bpte; done >messages 2>&1
grep -v -e Terminated -e Hangup messages && rm messages
stop INT etstream pack large.pte -o out.bpte
cat out.bpte
ls -A | grep -v npy
# A reader that goes away is an error.
{ etstream bundle large.pte --cases cases.json -o - >&3; echo "exit code $?"; } 3> >(head -c 1000 >start)
