// SPDX-License-Identifier: BSD-3-Clause
#include "report/diff_list.h"

namespace etstream {

Result<bool> diff_files(const FatContainerFile& a, const FatContainerFile& b, DiffList list) {
  const auto name_of = [](const FatPayload& payload) { return quote(payload.name); };
  for (const auto& [name, both] : by_key<FatPayload>(a.payloads(), b.payloads(), name_of)) {
    const auto& [one, other] = both;
    const std::string subject = text("payload {}", name);
    const auto told = [](const FatPayload* payload) {
      return payload ? counted(payload->data.size(), "byte") : "";
    };
    if (!one || !other) {
      list.compare(subject, told(one), told(other));
      continue;
    }
    ETSTREAM_TRY(list.compare_bytes(subject, "", one->data, other->data));
    list.compare_layout(subject, text("at {}", one->offset), text("at {}", other->offset));
  }
  const auto order = [](const FatContainerFile& file) {
    std::string out;
    for (const FatPayload& payload : file.payloads())
      out += text("{}{}", out.empty() ? "" : ", ", quote(payload.name));
    return out;
  };
  list.compare("order of payloads", order(a), order(b));
  return !list.has_content();
}

}  // namespace etstream
