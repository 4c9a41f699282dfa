// SPDX-License-Identifier: BSD-3-Clause
//
// FilePlan: a plan of a file, byte for byte. It contains the bytes of the metadata; for payloads, it knows
// where they go and where they come from. Planning is a pure function from a description to a FilePlan.
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
  std::uint32_t alignment = 1;  // of `offset`, as the format requires; a power of two
  std::uint32_t label = 0;      // an index in FilePlan::labels
  ByteSource source;

  /// Returns the size in bytes.
  [[nodiscard]] std::uint64_t size() const noexcept { return source.size(); }
};

/// The end of a file that is known only after the bytes before it are written: a directory of their hashes.
struct Trailer {
  /// A range of the file to be hashed, in bytes.
  struct Range {
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
  };
  std::vector<Range> hashed;  // by offset; they may be nested, and end before the trailer
  /// Returns the bytes of the last extent, as many as its size, given the hash of each range.
  std::function<std::vector<std::byte>(std::span<const ContentHash>)> bytes;
};

/// Extents in file order, without gaps or overlaps: padding is in extents too. A value; const use from
/// several threads is safe.
struct FilePlan {
  std::deque<Extent> extents;
  std::optional<Trailer> trailer;   // replaces the last extent's bytes when they are written
  std::vector<std::string> labels;  // what extents hold: "metadata", or the field that holds the payload
  std::uint64_t size = 0;           // of the file, in bytes
  std::uint64_t metadata_size = 0;  // the bytes that the plan itself holds in memory
  std::uint64_t payload_size = 0;   // the bytes that are read only when they are written

  /// Returns the label of `extent`, one of this plan's.
  [[nodiscard]] const std::string& label(const Extent& extent) const { return labels[extent.label]; }

  /// Returns the memory that writing uses, in bytes: the plan itself and the transfer buffer.
  [[nodiscard]] ETSTREAM_EXPORT std::uint64_t memory() const noexcept;
};

/// Returns the same for several plans that are written one after the other.
[[nodiscard]] ETSTREAM_EXPORT std::uint64_t memory_to_write(std::span<const FilePlan* const> plans) noexcept;

/// Returns the file that writing `plan` gives, to read it before or instead of writing it. Errors:
/// kUnsupported for a plan with a trailer, whose bytes are known only after writing; kTooLarge over 2^64 - 1
/// bytes.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> source_of(const FilePlan& plan);

/// Plans a copy of `source`.
[[nodiscard]] ETSTREAM_EXPORT FilePlan plan_copy(ByteSource source, std::string label);

}  // namespace etstream
