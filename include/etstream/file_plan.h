// SPDX-License-Identifier: BSD-3-Clause
//
// FilePlan: a plan of a file, byte for byte. The metadata's bytes are in it; of the payloads it knows
// where they go and where they lie. Planning is a pure function from a description to a FilePlan.
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   for (const etstream::Extent& extent : plan.extents) std::puts(plan.label(extent).c_str());
//   std::printf("%.1f MiB\n", static_cast<double>(plan.size) / (1 << 20));
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/content_hash.h"
#include "etstream/export.h"

namespace etstream {

/// A contiguous part of the file that comes from one source.
struct Extent {
  std::uint64_t offset = 0;     // from the start of the file, in bytes
  std::uint32_t alignment = 1;  // of `offset`, as the format asks for it; a power of two
  std::uint32_t label = 0;      // an index in FilePlan::labels
  ByteSource source;

  [[nodiscard]] std::uint64_t size() const noexcept { return source.size(); }
};

/// The end of a file that is known only once the bytes before it are written: a directory of their hashes.
struct Trailer {
  struct Range {
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
  };
  std::vector<Range> hashed;  // by offset; they may lie in each other, and end before the trailer
  /// The bytes of the last extent, as many as that has, from the hash of each range.
  std::function<std::vector<std::byte>(std::span<const ContentHash>)> bytes;
};

/// Extents in file order, without gaps or overlaps: padding is part of them. A value; const use from
/// several threads is safe.
struct FilePlan {
  std::deque<Extent> extents;
  std::optional<Trailer> trailer;   // takes the place of the last extent's bytes when that is written
  std::vector<std::string> labels;  // what extents hold: "metadata", or the field that holds the payload
  std::uint64_t size = 0;           // of the file, in bytes
  std::uint64_t metadata_size = 0;  // the bytes that the plan itself holds in memory
  std::uint64_t payload_size = 0;   // the bytes that stay where they lie until they are written

  /// What `extent`, which is one of this plan's, holds.
  [[nodiscard]] const std::string& label(const Extent& extent) const { return labels[extent.label]; }

  /// How many bytes of memory writing takes: the plan itself and the transfer buffer.
  [[nodiscard]] ETSTREAM_EXPORT std::uint64_t memory() const noexcept;
};

/// The same of several plans that are written one after the other.
[[nodiscard]] ETSTREAM_EXPORT std::uint64_t memory_to_write(std::span<const FilePlan* const> plans) noexcept;

/// The file that writing `plan` gives, to be read before it is written or instead. Errors: kUnsupported for
/// a plan with a trailer, whose bytes only writing tells; kTooLarge over 2^64 - 1 bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> source_of(const FilePlan& plan);

/// The plan of a file that holds what `source` holds, as it is.
[[nodiscard]] ETSTREAM_EXPORT FilePlan plan_copy(ByteSource source, std::string label);

}  // namespace etstream
