// SPDX-License-Identifier: BSD-3-Clause
//
// A fat container (NFAT, version 1): payloads under names, such as one program for each backend. Described to
// be written:
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

struct FatContainer {
  struct Payload {
    std::string name;  // 1 to 32 characters of ASCII that can be printed
    ByteSource data;
  };

  /// In file order, which is the order in which a reader prefers them.
  std::vector<Payload> payloads;
  /// Of where each payload begins in the file, a power of two up to 2^30. With 1 payloads follow each other
  /// without padding, as ExecuTorch packs them; with a page's size each can be mapped and cloned.
  std::uint32_t alignment = 1;
  /// Store payloads of equal bytes once, which takes reading those of equal size.
  bool share_equal = true;
};

/// The plan of the file. Payloads of distinct bytes, or without share_equal, and an alignment of 1 give the
/// bytes that ExecuTorch's native backend packs (backends/native/fat_pte.py). Errors: kInvalidArgument for a
/// name that is none or comes twice, an alignment that is none; kTooLarge over 65,536 payloads or 2^64 - 1
/// bytes; those of reading, with share_equal.
[[nodiscard]] ETSTREAM_EXPORT Result<FilePlan> plan(const FatContainer& container);

}  // namespace etstream
