// SPDX-License-Identifier: BSD-3-Clause
#include "report/diff_list.h"
#include "weights/checkpoint_file.h"

namespace etstream {

Result<bool> diff_files(const NativePackageFile& a, const NativePackageFile& b, DiffList list) {
  ETSTREAM_TRY(list.compare_bytes("graph", "", a.graph(), b.graph()));
  const auto in_a = a.tensors();
  const auto in_b = b.tensors();
  const auto name_of = [](const CheckpointTensor& tensor) { return quote(tensor.name); };
  for (const auto& [name, both] : by_key<CheckpointTensor>(in_a, in_b, name_of)) {
    const auto& [one, other] = both;
    list.compare(name, one ? type_text(*one) : "", other ? type_text(*other) : "");
    if (!one || !other) continue;
    ETSTREAM_TRY(list.compare_bytes(name, type_text(*one), one->data, other->data));
    list.compare_layout(name, text("at {}", one->data.offset_in(a.file()).value_or(0)),
                        text("at {}", other->data.offset_in(b.file()).value_or(0)));
  }
  return !list.has_content();
}

}  // namespace etstream
