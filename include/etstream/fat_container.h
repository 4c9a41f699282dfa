// SPDX-License-Identifier: BSD-3-Clause
//
// A fat container (NFAT, version 1): named payloads, such as one program for each backend. To describe one
// for writing:
//
//   etstream::FatContainer container;
//   container.payloads.push_back({"portable", etstream::ByteSource::zeros(24)});
//   const auto plan = etstream::plan(container);
//   if (!plan) return plan.error();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"

namespace etstream {

/// A description of a fat container, for planning.
struct FatContainer {
  /// A file in the container, or data that only a backend can read.
  struct Payload {
    std::string name;  // 1 to 32 printable ASCII characters
    ByteSource data;
  };

  /// The payloads in file order, which is the order in which a reader prefers them.
  std::vector<Payload> payloads;
  /// The alignment of each payload in the file, a power of two up to 2^30. With 1, payloads follow each other
  /// without padding, as ExecuTorch packs them; with the page size, each can be mapped and cloned.
  std::uint32_t alignment = 1;
  /// Stores payloads with equal bytes once. To find them, payloads of equal size are read.
  bool share_equal = true;
};

/// Plans the file. The bytes are those that ExecuTorch's native backend packs (backends/native/fat_pte.py) if
/// the alignment is 1 and either payloads are distinct or share_equal is false. Errors: kInvalidArgument for
/// an invalid or repeated name, or an invalid alignment; kTooLarge over 65,536 payloads or 2^64 - 1 bytes;
/// with share_equal, read errors, and kTooLarge if payloads of equal size overlap so that each byte would be
/// read more than 4 times on average.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const FatContainer& container);

}  // namespace etstream
