// SPDX-License-Identifier: BSD-3-Clause
#include "report/diff_list.h"

namespace etstream {

Result<bool> diff_files(const CheckpointFile& a, const CheckpointFile& b, DiffList list) {
  const auto format = [](const CheckpointFile& file) {
    return text("{}{}", describe(file.kind), file.version == 0 ? "" : text(" version {}", file.version));
  };
  list.compare_layout("format", format(a), format(b));
  if (a.kind == b.kind) ETSTREAM_TRY(list.compare_bytes("metadata", "", a.metadata, b.metadata));
  const auto name_of = [](const CheckpointTensor& tensor) { return quote(tensor.name); };
  for (const auto& [name, both] : by_key<CheckpointTensor>(a.tensors, b.tensors, name_of)) {
    const auto& [one, other] = both;
    list.compare(name, one ? type_text(*one) : "", other ? type_text(*other) : "");
    if (!one || !other) continue;
    ETSTREAM_TRY(list.compare_bytes(name, type_text(*one), one->data, other->data));
    list.compare_layout(name, text("at {}", one->data.offset_in(a.file).value_or(0)),
                        text("at {}", other->data.offset_in(b.file).value_or(0)));
  }
  return !list.has_content();
}

}  // namespace etstream
