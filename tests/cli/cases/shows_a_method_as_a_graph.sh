try etstream inspect model.pte --graph forward
etstream inspect model.pte --graph forward --json >a.json
grep -c producers a.json
try etstream inspect model.pte --graph backward
try etstream inspect model.pte --graph forward --duplicates
try etstream inspect model.pte --format dot
