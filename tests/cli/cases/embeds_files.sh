# SPDX-License-Identifier: BSD-3-Clause
#
# A file becomes part of a program for a board: an object file, assembly, and a header.
etstream embed model.pte --target arm -o model.o -o model.h
cat model.h
etstream embed model.pte --target riscv64 --section network_model_sec --symbol model_pte --align 16 -o board.o --json
etstream embed model.pte -o model.S
cat model.S
etstream bundle model.pte --cases cases.json --program-alignment 16 -o model.bpte
etstream embed model.bpte --target arm -o model.o --dry-run

echo "== refused"
try etstream embed model.pte -o x.o
try etstream embed model.pte -o x.obj
try etstream embed model.pte -o - --target arm
try etstream embed model.pte -o x.o --target sparc
try etstream embed model.pte -o x.h --symbol 1x
try etstream embed model.pte -o x.h --section 'a b'
try etstream embed model.pte -o x.h --align 24
try etstream embed no-such-file -o x.h
: >empty
try etstream embed empty -o x.h
head -c 3000 model.pte >cut.pte
try etstream embed cut.pte -o x.h
try etstream embed model.pte -o model.pte
cp model.pte model.S
try etstream embed model.S -o model.S
try etstream embed model.pte -o x.S -o x.S
try etstream embed model.pte -o x.h
cp model.pte 'a"b'
try etstream embed 'a"b' -o x.S
etstream embed 'a"b' -o x.o --target x86-64
ls x* model.S
