# share moves the data that programs have in common into one file of tensor data, and reports it.
mkdir in
cp model.pte in/portable.pte
etstream pte model.pte --segment-alignment 4096 -o in/aligned.pte >/dev/null
etstream pte model.pte --constants-to in/own.ptd -o in/thin.pte >/dev/null
ls in
try etstream share in/portable.pte in/aligned.pte --dry-run
try etstream share in/portable.pte in/aligned.pte --dry-run --json
try etstream share in/portable.pte in/aligned.pte --weights-to shared.ptd --out-dir out --fat all.fat
ls out
try etstream verify out/portable.pte shared.ptd
try etstream verify out/aligned.pte shared.ptd
try etstream inspect all.fat
# All constants move out, and come back.
try etstream share in/portable.pte in/aligned.pte --weights-to all.ptd --out-dir all --fat only.fat --least-size 1 --no-sync | tail -n 8
etstream pte all/portable.pte --constants-from all.ptd -o back.pte >/dev/null
cmp back.pte in/portable.pte && echo "as it was"
# A program that shares nothing stays as it is, and its own weights fit it beside the shared ones.
try etstream share in/portable.pte in/aligned.pte in/thin.pte --weights-to three.ptd --out-dir three | grep -A 9 'after'
cmp in/thin.pte three/thin.pte && echo "as it was"

# The weights may be in shards, of which the first stands for all.
try etstream share in/portable.pte in/aligned.pte --weights-to w.ptd --out-dir split --least-size 1 --split-max-size 20K | tail -n 5
try etstream verify split/aligned.pte w-00001-of-00003.ptd
try etstream share in/portable.pte in/aligned.pte --weights-to w.ptd --dry-run --split-max-size 1K

# Programs get names of their own, and lie where they can be mapped in the container.
try etstream share xnnpack=in/portable.pte ./in/aligned.pte --weights-to named.ptd --out-dir named --fat named.fat --align 4K | head -n 4
ls named
try etstream inspect named.fat
cp -r in a=b
etstream share ./a=b/portable.pte x=a=b/aligned.pte --weights-to equals.ptd --out-dir equals >/dev/null
ls equals
rm -r a=b equals equals.ptd named named.fat named.ptd

echo "--- what is refused, and leaves nothing"
try etstream share a=in/portable.pte a=in/aligned.pte --weights-to new.ptd --out-dir new
try etstream share a=in/portable.pte a=in/aligned.pte --weights-to new.ptd --fat new.fat
try etstream share a=in/portable.pte b=missing --weights-to new.ptd --out-dir new
try etstream share a= in/aligned.pte --weights-to new.ptd --out-dir new
try etstream share in/portable.pte in/aligned.pte --weights-to new.ptd --out-dir new --align 4K
try etstream share in/portable.pte in/aligned.pte --weights-to new.ptd --fat new.fat --align 3
try etstream share in/portable.pte --weights-to new.ptd --out-dir new
try etstream share in/portable.pte in/aligned.pte --out-dir new
try etstream share in/portable.pte in/aligned.pte --weights-to new.ptd
try etstream share in/portable.pte in/aligned.pte --weights-to - --out-dir new
try etstream share in/portable.pte in/thin.pte --weights-to new.ptd --out-dir new
try etstream share in/portable.pte in/own.ptd --weights-to new.ptd --out-dir new
try etstream share in/portable.pte in/aligned.pte --weights-to new.ptd --out-dir in
try etstream share in/portable.pte in/aligned.pte --weights-to in/aligned.pte --out-dir new
try etstream share in/portable.pte in/aligned.pte --weights-to new/aligned.pte --out-dir new
try etstream share in/portable.pte model.pte in/portable.pte --weights-to new.ptd --out-dir new
try etstream share in/portable.pte in/aligned.pte --weights-to new.ptd --out-dir no/new
try etstream share in/portable.pte in/aligned.pte --weights-to no/new.ptd --out-dir new
try etstream share in/portable.pte in/aligned.pte --weights-to new.ptd --out-dir new --least-size 0
head -c 20000 model.pte >in/short.pte
try etstream share in/portable.pte in/short.pte --weights-to new.ptd --out-dir new
try etstream share in/portable.pte missing.pte --weights-to new.ptd --out-dir new
# A word with = is a path if it leads to a file, and a folder of that name is none.
mkdir lr=0.1 a=model.pte
cp model.pte lr=0.1/one.pte
try etstream share lr=0.1/one.pte a=model.pte --weights-to new.ptd --dry-run | head -3
mkdir 0.1 && touch 0.1/one.pte 0.1/one.pte.etz
try etstream share lr=0.1/one.pte a=model.pte --weights-to new.ptd --dry-run
try etstream share ./lr=0.1/one.pte a=model.pte --weights-to new.ptd --dry-run | head -3
rm -r lr=0.1 a=model.pte 0.1
ls -A | grep -v npy
