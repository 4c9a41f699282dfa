// SPDX-License-Identifier: BSD-3-Clause
#include "written_layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "base/text.h"
#include "etstream/sink.h"
#include "etstream/write.h"

namespace etstream::testing {

std::vector<std::byte> bytes_of(const Layout& layout) {
  std::vector<std::byte> out;
  const auto sink = open_memory_sink(out);
  const auto done = write(layout, *sink);
  if (!done) {
    FAIL_CHECK(done.error().message);
    return {};
  }
  return out;
}

std::vector<std::byte> bytes_of(const Layout& layout, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> out(size);
  for (const Extent& extent : layout.extents) {
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

std::string flaw_in(const Layout& layout) {
  std::uint64_t end = 0;
  std::uint64_t metadata = 0;
  for (const Extent& extent : layout.extents) {
    if (extent.label >= layout.labels.size()) return text("the extent at ", extent.offset, " has no label");
    const std::string at = text("the extent ", quote(layout.label(extent)), " at ", extent.offset);
    if (extent.offset != end) return text(at, " should be at ", end);
    if (extent.size() == 0) return text(at, " is empty");
    if (layout.label(extent).empty()) return text(at, " has no label");
    if (!is_power_of_two(extent.alignment) || extent.offset % extent.alignment != 0) {
      return text(at, " is not aligned to ", extent.alignment);
    }
    end += extent.size();
    if (layout.label(extent) == "metadata") metadata += extent.size();
  }
  if (end != layout.size) return text("the extents end at ", end, ", the layout at ", layout.size);
  if (metadata != layout.metadata_size) {
    return text("the metadata is ", metadata, " bytes, the layout says ", layout.metadata_size);
  }
  if (layout.payload_size != end - metadata) {
    return text("the payload is ", end - metadata, " bytes, the layout says ", layout.payload_size);
  }
  return "";
}

std::string difference(const std::vector<std::byte>& ours, const std::vector<std::byte>& expected) {
  if (ours == expected) return "";
  const auto [mine, theirs] = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end());
  return text("they differ from offset ", static_cast<std::uint64_t>(mine - ours.begin()), " on; ",
              ours.size(), " bytes, expected ", expected.size());
}

}  // namespace etstream::testing
