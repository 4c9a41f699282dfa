// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/file_plan.h"

#include "base/try.h"
#include "io/transfer.h"

namespace etstream {

std::uint64_t FilePlan::memory() const noexcept {
  return kTransferBufferSize + metadata_size + extents.size() * sizeof(Extent);
}

Result<ByteSource> source_of(const FilePlan& plan) {
  return without_exceptions([&]() -> Result<ByteSource> {
    if (plan.trailer) return Error{ErrorCode::kUnsupported, "the end of the file is not known yet"};
    std::vector<ByteSource> parts;
    for (const Extent& extent : plan.extents) parts.push_back(extent.source);
    return ByteSource::concatenation(std::move(parts));
  });
}

FilePlan plan_copy(ByteSource source, std::string label) {
  FilePlan plan;
  plan.size = plan.payload_size = source.size();
  plan.labels.push_back(std::move(label));
  plan.extents.push_back({0, 1, 0, std::move(source)});
  return plan;
}

}  // namespace etstream
