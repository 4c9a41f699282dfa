# Every option that takes bytes takes the same spellings.
for size in 4096 4096B 4K 4k 4KB 4KiB 4Ki '4 KiB' '4   kb'; do
  echo "$size"
  etstream pte model.pte --segment-alignment "$size" --dry-run | sed -n '$p'
done
try etstream bundle model.pte --cases cases.json -o out.bpte --program-alignment 4K
try etstream fat a=model.pte -o out.fat --align '16 KiB'
try etstream inspect out.fat
try etstream ptd model.pte -o out.ptd --segment-alignment 4k --max-disk 1MiB --max-memory '1 GB'
try etstream ptd model.pte -o split.ptd --split-max-size 32KB
# Words that are no size, sizes out of bounds and likely slips are refused.
for size in much -5 '' ' 4K' +4K 4X 4KX 4BB 1.5G 1,5G 0x10 16E 99999999999999999999; do
  etstream run --limit "$size" -- true
done
for size in 0 4 4096 100K; do etstream run --limit "$size" -- true; done
try etstream run --from 1K -- true
try etstream profile --fail-above 4Q@lower -- true
try etstream bundle model.pte --cases cases.json -o out.bpte --program-alignment 8G
