# help tells of all subcommands, or of one, as --help does.
try etstream help | grep -c '^  '
etstream --help >all && etstream help | cmp - all && echo "as --help"
for command in bundle run help; do etstream help $command | diff - <(etstream $command --help) && echo "$command as --help"; done
try etstream help fat pack
try etstream info model.pte
try etstream -V | grep -c '^etstream [0-9]'
etstream help fat | grep -e --align -e Usage
try etstream help --help | head -n 1
# No subcommand at all is an error, and shows the help.
try etstream 2>said
cmp said all && echo "as --help"
# Each fits on a screen, and opens with two examples, which are right command lines.
for command in $(etstream help | sed -n '/^Subcommands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  etstream help $command >page
  [ $(wc -l <page) -le 45 ] && [ $(wc -L <page) -le 80 ] || echo "$command: $(wc -lL <page)"
  [ $(grep -c "^  etstream $command " page) = 2 ] || echo "$command: no examples"
  sed -n 's/^  \(etstream .*\)/\1/p' page | while read -r line; do
    eval "$line" </dev/null 2>&1 | grep -e 'see etstream help' -e 'did you mean'
  done
done
