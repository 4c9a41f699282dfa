etstream bundle model.pte --cases cases.json -o model.bpte --no-sync >/dev/null
etstream bundle model.pte --cases cases.json -o segmented.bpte --to segmented --no-sync >/dev/null
# The expected outputs, as a device would write them.
mkdir arm qnn nxp nxp/0 nxp/1
tail -c 40 scores_0.npy >arm/out-0.bin
for i in 0 1; do
  tail -c 40 scores_$i.npy >qnn/output_${i}_0.raw
  tail -c 40 scores_$i.npy >nxp/$i/0000.bin
done
try etstream compare model.bpte --outputs arm --case 0
try etstream compare model.bpte --outputs qnn
try etstream compare segmented.bpte --outputs nxp --method forward --atol 0 --rtol 0.5
etstream extract model.bpte --cases extracted --no-sync >/dev/null
try etstream compare model.bpte --outputs extracted --json
# An element differs.
printf '\0\0\200\77' | dd of=qnn/output_1_0.raw bs=1 seek=12 conv=notrunc status=none
try etstream compare model.bpte --outputs qnn
try etstream compare model.bpte --outputs qnn --json >report.json
sed -n '/"test case 1"/,$p' report.json
try etstream compare model.bpte --outputs qnn --atol 10
try etstream compare model.bpte --outputs qnn --case 0
# Files that are no outputs, outputs that have no file, and a file that is too short.
touch arm/etdump.bin
tail -c 36 scores_0.npy >nxp/0/0000.bin
rm nxp/1/0000.bin
cp scores_0.npy nxp/7.npy
try etstream compare model.bpte --outputs arm --case 1
try etstream compare model.bpte --outputs nxp
rm nxp/7.npy
try etstream compare model.bpte --outputs nxp
try etstream compare model.bpte --outputs nxp --json >report.json
grep '"problem"\|"ok"' report.json
# There is nothing to compare.
mkdir empty
try etstream compare model.bpte --outputs empty
try etstream compare model.bpte --outputs missing
try etstream compare model.bpte --outputs arm --case 2
try etstream compare model.bpte --outputs arm --method backward
try etstream compare model.pte --outputs arm
try etstream compare model.bpte
try etstream compare model.bpte --outputs arm --case x
