// SPDX-License-Identifier: BSD-3-Clause
//
// Estimates from samples how far compression would shrink a file.
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

/// Sizes are in bytes.
struct CodedSizes {
  /// The size of one payload.
  struct One {
    std::uint32_t content = 0;  // its index in the list
    std::uint64_t size = 0;     // after coding
  };
  std::vector<One> contents;     // the sampled ones, in the order of the list
  std::uint64_t looked_at = 0;   // their total size
  std::uint64_t saved = 0;       // how much of that coding would save
  std::uint64_t bytes_read = 0;  // as samples
};

/// Estimates the size of payloads after an entropy coder that codes each byte by its frequency at its
/// position in an element, such as the exponents of floats. Samples the 1,024 largest of `contents` that have
/// no children and at least 64 KiB: 64 KiB of each are read, from 16 places. A compressor that also finds
/// repeated strings, such as zstd, may save more; random data can't be compressed by either. Errors: kIo;
/// kCorrupt for a file that changes.
[[nodiscard]] ETSTREAM_EXPORT Result<CodedSizes> estimate_coded_sizes(
    const ByteSource& file, const std::vector<FileContent>& contents);

}  // namespace etstream
