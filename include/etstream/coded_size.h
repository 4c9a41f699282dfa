// SPDX-License-Identifier: BSD-3-Clause
//
// What compression would make of a file, told from samples.
//
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto contents = etstream::read_contents(file).value();
//   const auto estimate = etstream::estimate_coded_sizes(file, contents);
//   if (!estimate) return estimate.error();
//   std::printf("%llu bytes less\n", static_cast<unsigned long long>(estimate->saved));
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_contents.h"
#include "etstream/result.h"

namespace etstream {

/// In bytes.
struct CodedSizes {
  struct One {
    std::uint32_t content = 0;  // its place in the list
    std::uint64_t size = 0;     // that it would have
  };
  std::vector<One> contents;     // those that were looked at, as the list has them
  std::uint64_t looked_at = 0;   // what they are together
  std::uint64_t saved = 0;       // of that
  std::uint64_t bytes_read = 0;  // to find out
};

/// The size that an entropy coder would bring payloads to: one that codes each byte by how often it comes at
/// its place in an element, such as the exponents of floats. Of the 1,024 largest of `contents` that have
/// nothing in them, those of 64 KiB and more; of each, 64 KiB from 16 places are read. What finds repeated
/// strings too, as zstd does, may save more; for random data both save nothing. Errors: kIo; kCorrupt for a
/// file that changes.
[[nodiscard]] ETSTREAM_EXPORT Result<CodedSizes> estimate_coded_sizes(
    const ByteSource& file, const std::vector<FileContent>& contents);

}  // namespace etstream
