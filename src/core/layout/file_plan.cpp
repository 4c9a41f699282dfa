// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/file_plan.h"

#include "core/base/try.h"
#include "core/io/transfer.h"

namespace etstream {

std::uint64_t FilePlan::memory() const noexcept {
  const FilePlan* const one = this;
  return memory_to_write({&one, 1});
}

std::uint64_t memory_to_write(std::span<const FilePlan* const> plans) noexcept {
  std::uint64_t out = kTransferBufferSize;
  for (const FilePlan* const plan : plans) {
    out += plan->metadata_size + plan->extents.size() * sizeof(Extent);
  }
  return out;
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
