// SPDX-License-Identifier: BSD-3-Clause
//
// PayloadBudget: bounds what is read or written of a file's payloads, which tables may refer to over and
// over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Counts the bytes of payloads against the size of the file that they lie in.
class PayloadBudget {
 public:
  explicit PayloadBudget(const ByteSource& file) : PayloadBudget(file.name(), file.size()) {}
  /// Of several files, with so many bytes together.
  PayloadBudget(std::string name, std::uint64_t size)
      : name_(std::move(name)), size_(size), left_(kFree + kMostSharing * std::min(size, kMostCounted)) {}

  /// Error: kTooLarge once they are too many.
  Result<void> spend(std::uint64_t bytes) {
    if (bytes > left_) {
      return make_error(
          ErrorCode::kTooLarge,
          "{}: expected payloads that share its {} bytes at most {} times on average, found more", name_,
          size_, kMostSharing);
    }
    left_ -= bytes;
    return {};
  }

 private:
  static constexpr std::uint64_t kMostSharing = 4;
  /// Small files may share as they like: names that stand for one tensor, for one.
  static constexpr std::uint64_t kFree = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 60;  // so that nothing overflows

  const std::string name_;
  const std::uint64_t size_;
  std::uint64_t left_;
};

}  // namespace etstream
