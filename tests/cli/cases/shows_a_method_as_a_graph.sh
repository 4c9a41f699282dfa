try etstream inspect model.pte --graph forward
etstream inspect model.pte --graph forward --json >a.json
etstream inspect model.pte --graph forward --format json >b.json
try cmp a.json b.json
grep -c producers a.json
try etstream inspect model.pte --graph backward
try etstream inspect model.pte --graph forward --duplicates
try etstream inspect model.pte --format json
