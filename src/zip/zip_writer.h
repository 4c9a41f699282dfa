// SPDX-License-Identifier: BSD-3-Clause
//
// Stored members at the end of a plan, byte for byte as Python's zipfile writes them to a file.
//
//   ZipWriter writer(plan, 1);
//   ETSTREAM_TRY(writer.begin({.name = "a", .size = data.size(), .crc32 = crc}, true));
//   ETSTREAM_TRY(append(plan, 1, "a", data));
//   ETSTREAM_TRY(writer.finish());
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "zip/zip_records.h"

namespace etstream {

class ZipWriter {
 public:
  /// Members' data begins at multiples of `alignment` of the file, a power of two up to 2^15. The archive
  /// begins the plan, which outlives the writer.
  ZipWriter(FilePlan& plan, std::uint32_t alignment) : plan_(plan), alignment_(alignment) {}

  /// Appends the header of a member, whose data the caller appends next. Its places are set here. `whole`
  /// says that zipfile would be given the data in one piece, which decides the header of one of about 2 GiB.
  [[nodiscard]] Result<void> begin(ZipMember member, bool whole);
  /// Appends the directory.
  [[nodiscard]] Result<void> finish();
  /// The bytes of headers and directory so far.
  [[nodiscard]] std::uint64_t metadata_size() const noexcept { return metadata_size_; }

 private:
  struct Written {
    ZipMember member;
    std::uint16_t version = 0;  // that a reader needs
  };

  Result<void> append_record(std::vector<std::byte> bytes, const char* label);

  FilePlan& plan_;
  const std::uint32_t alignment_;
  std::vector<Written> members_;
  std::uint64_t metadata_size_ = 0;
};

}  // namespace etstream
