// SPDX-License-Identifier: BSD-3-Clause
#include "written_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "core/base/text.h"
#include "etstream/sink.h"

namespace etstream::testing {

std::vector<std::byte> bytes_of(const FilePlan& plan) {
  CHECK(std::ranges::all_of(plan.extents, is_aligned));
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  const auto done = write(plan, *sink);
  if (!done) {
    FAIL_CHECK(done.error().message);
    return {};
  }
  return out;
}

std::vector<std::byte> bytes_of(const FilePlan& plan, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> out(size);
  for (const Extent& extent : plan.extents) {
    const std::uint64_t first = std::max(offset, extent.offset);
    const std::uint64_t end = std::min(offset + size, extent.offset + extent.size());
    if (first >= end) continue;
    const auto part = std::span(out).subspan(first - offset, end - first);
    if (const auto done = extent.source.read_at(first - extent.offset, part); !done) {
      FAIL_CHECK(done.error().message);
    }
  }
  return out;
}

std::string flaw_in(const FilePlan& plan) {
  std::uint64_t end = 0;
  std::uint64_t metadata = 0;
  for (const Extent& extent : plan.extents) {
    if (extent.label >= plan.labels.size()) return text("the extent at {} has no label", extent.offset);
    const std::string at = text("the extent {} at {}", quote(plan.label(extent)), extent.offset);
    if (extent.offset != end) return text("{} should be at {}", at, end);
    if (extent.size() == 0) return text("{} is empty", at);
    if (plan.label(extent).empty()) return text("{} has no label", at);
    if (!is_aligned(extent)) return text("{} is not aligned to {}", at, extent.alignment);
    end += extent.size();
    if (plan.label(extent) == "metadata") metadata += extent.size();
  }
  if (end != plan.size) return text("the extents end at {}, the plan at {}", end, plan.size);
  if (metadata != plan.metadata_size) {
    return text("the metadata is {} bytes, the plan says {}", metadata, plan.metadata_size);
  }
  if (plan.payload_size != end - metadata) {
    return text("the payload is {} bytes, the plan says {}", end - metadata, plan.payload_size);
  }
  return "";
}

std::string difference(const std::vector<std::byte>& ours, const std::vector<std::byte>& expected) {
  if (ours == expected) return "";
  const auto [mine, theirs] = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end());
  return text("they differ from offset {} on; {} bytes, expected {}",
              static_cast<std::uint64_t>(mine - ours.begin()), ours.size(), expected.size());
}

}  // namespace etstream::testing
