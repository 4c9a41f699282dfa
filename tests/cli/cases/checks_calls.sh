# SPDX-License-Identifier: BSD-3-Clause verify checks a call of another operator, which takes other arguments, and a
# call of one that etstream does not know.
sed 's/aten::relu/aten::gelu/' model.pte >other.pte
try etstream verify other.pte
sed 's/aten::relu/mine::relu/' model.pte >mine.pte
try etstream verify mine.pte
try etstream verify mine.pte --json
