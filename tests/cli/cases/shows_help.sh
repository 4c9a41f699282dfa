# help tells of all subcommands, or of one, as --help does.
try etstream help | grep -c '^  '
etstream --help >all && etstream help | cmp - all && echo "as --help"
for command in bundle run help; do etstream help $command | diff - <(etstream $command --help) && echo "$command as --help"; done
try etstream help fat | grep '^  pack'
etstream help fat pack | grep -e --align -e Usage
try etstream help --help | head -n 1
# No subcommand at all is an error, and shows the help.
try etstream 2>said
cmp said all && echo "as --help"
