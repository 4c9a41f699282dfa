# --metadata lets a program say things of its model, as named data; inspect shows them.
printf '{%% for message in messages %%}' >template
try etstream pte model.pte --metadata general.name=Llama --metadata context.length=8192 --metadata rope.theta=1e-5 \
  --metadata 'eos=[1, 2]' --metadata 'version="3"' --metadata chat=@template -o out.pte
try etstream inspect out.pte | sed -n '/^metadata/,/^$/p'
try etstream verify out.pte
etstream inspect out.pte --json | grep -A3 '"metadata"'
# Another value takes the place of the earlier one; moving constants out leaves it there.
try etstream pte out.pte --metadata context.length=4096 --metadata general.name=Other -o other.pte
etstream inspect other.pte | sed -n '/^metadata/,/^$/p'
try etstream pte out.pte --constants-to w.ptd -o thin.pte
etstream inspect thin.pte | sed -n '/^metadata/,/^$/p'
try etstream verify thin.pte w.ptd
try etstream bundle model.pte --cases cases.json --metadata general.name=Llama -o out.bpte
etstream inspect out.bpte | sed -n '/^metadata/,/^$/p'
try etstream pte model.pte --metadata general.name -o none
try etstream pte model.pte --metadata =1 -o none
try etstream pte model.pte --metadata a=1 --metadata a=2 -o none
try etstream pte model.pte --metadata a=99999999999999999999 -o none
try etstream pte model.pte --metadata a=@missing -o none
ls none 2>&1
