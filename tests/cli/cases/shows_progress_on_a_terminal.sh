# Work of over a second shows a bar, only if standard error is a terminal, and wipes it away at the end.
cp model.pte large.pte
truncate -s 109158K large.pte  # 64 MiB are just over six tenths of the bundle
cat >slow.sh <<'END'
etstream bundle large.pte --cases cases.json -o - | { head -c 60M >/dev/null; sleep 4; cat >/dev/null; }
END
bash slow.sh
# `script` runs its command in the shell that the environment names, if it names one: a file needs none.
script --quiet --return --command 'bash slow.sh' typescript </dev/null >/dev/null
grep --only-matching --text '\[#*\.*\]' typescript | awk '{ print length }' | sort -u
# A share and its bar are of the same part.
grep --only-matching --text '[0-9]*% \[#*' typescript | awk '{ done = gsub("#", "") / 0.3; print ($1 + 0.5 < done || $1 - 0.5 > done + 1 / 0.3) }' | sort -u
tr '\r' '\n' <typescript | grep --text --after-context 1 '%' | tail -n 1 | cat -v
# Short work shows none, and a terminal gets no bundle.
on_terminal() { script --quiet --return --command "$*" typescript </dev/null >/dev/null; }
on_terminal etstream bundle model.pte --cases cases.json -o out.bpte
grep -c % typescript
try on_terminal etstream bundle model.pte --cases cases.json -o -
grep --only-matching 'etstream.*pipe' typescript
