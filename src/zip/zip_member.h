// SPDX-License-Identifier: BSD-3-Clause
//
// A member of a zip archive that is stored as it is.
#pragma once

#include <cstdint>
#include <string>

#include "zip/zip_records.h"

namespace etstream {

struct ZipMember {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;
  std::uint16_t day = zip::kFirstDay;  // as MS-DOS has it: years since 1980 in 7 bits, month in 4, day in 5
  std::uint16_t time = 0;              // hours in 5 bits, minutes in 6, seconds halved in 5
  std::uint64_t header = 0;            // where its local header is in the file
  std::uint64_t offset = 0;            // where its data begins
};

}  // namespace etstream
