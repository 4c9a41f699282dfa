// SPDX-License-Identifier: BSD-3-Clause
//
// FileBudget: a bound on the work that a file can cause. Its tables may refer to one object or payload over
// and over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Counts the objects that are reached against the size of the metadata, and the payloads that are read or
/// written against the size of the file, so that the work stays in proportion to the file.
class FileBudget {
 public:
  /// The most times that each byte may be used on average. ExecuTorch's writers share vtables, equal weights
  /// and little else.
  static constexpr std::uint64_t kMostSharing = 4;

  /// Returns how many bytes of payloads may be read or written for a file of this size. Small files may share
  /// as they like, such as one tensor under many names.
  static std::uint64_t most_payloads(std::uint64_t file_size) {
    constexpr std::uint64_t kFreePayloads = std::uint64_t{1} << 20;
    return kFreePayloads + most_of(file_size);
  }

  explicit FileBudget(const ByteSource& file) : FileBudget(file.name(), file.size()) {}
  /// A budget for a file that is all metadata, or for several files of this size together.
  FileBudget(std::string name, std::uint64_t size) : FileBudget(std::move(name), size, size) {}
  FileBudget(std::string name, std::uint64_t metadata_size, std::uint64_t file_size)
      : name_(std::move(name)),
        file_size_(file_size),
        objects_left_(most_of(metadata_size)),
        payloads_left_(most_payloads(file_size)) {}

  /// Counts `bytes` of an object at `position` that are reached. Error: kCorrupt once they are too many.
  Result<void> reach(std::uint64_t position, std::uint64_t bytes) {
    if (bytes > objects_left_) {
      return unexpected(ErrorCode::kCorrupt, {name_, position},
                        "objects that are shared at most {} times on average, found more sharing",
                        kMostSharing);
    }
    objects_left_ -= bytes;
    return {};
  }

  /// Counts `bytes` of a payload that are read or written. Error: kTooLarge once they are too many.
  Result<void> spend(std::uint64_t bytes) {
    if (bytes > payloads_left_) {
      return error_in(ErrorCode::kTooLarge, name_,
                      "expected payloads that share {} bytes at most {} times on average, found more",
                      file_size_, kMostSharing);
    }
    payloads_left_ -= bytes;
    return {};
  }

 private:
  static std::uint64_t most_of(std::uint64_t size) {
    constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 60;  // so that nothing overflows
    return kMostSharing * std::min(size, kMostCounted);
  }

  std::string name_;
  std::uint64_t file_size_;
  std::uint64_t objects_left_;
  std::uint64_t payloads_left_;
};

}  // namespace etstream
