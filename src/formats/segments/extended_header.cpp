// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/extended_header.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {

Result<ExtendedHeader> read_extended_header(const ByteSource& file, const std::string& name) {
  ExtendedHeader header;
  header.program_size = file.size();
  std::array<std::byte, ExtendedHeader::kSize> bytes{};
  const auto magic = std::as_bytes(std::span(ExtendedHeader::kMagic));
  if (file.size() < ExtendedHeader::kPosition + bytes.size()) return header;
  ETSTREAM_TRY(file.read_at(ExtendedHeader::kPosition, bytes));
  if (!std::equal(magic.begin(), magic.end(), bytes.begin())) return header;
  const auto field = [&](std::size_t offset, auto& out) {
    std::memcpy(&out, bytes.data() + offset, sizeof(out));
  };
  const auto corrupt = [&]<class... Arguments>(std::size_t offset, Template<Arguments...> words,
                                               const Arguments&... arguments) {
    return unexpected(ErrorCode::kCorrupt, {name, ExtendedHeader::kPosition + offset, "extended header"},
                      words, arguments...);
  };
  field(4, header.length);
  if (header.length < ExtendedHeader::kSmallest) {
    return corrupt(4, "a length of at least {}, found {}", ExtendedHeader::kSmallest, header.length);
  }
  field(8, header.program_size);
  field(16, header.segment_base_offset);
  if (header.length >= ExtendedHeader::kSize) field(24, header.segment_data_size);
  if (header.program_size > file.size()) {
    return corrupt(8, "a program size inside the file's {} bytes, found {}", file.size(),
                   header.program_size);
  }
  // Each segment is checked when it is read; older writers omitted the size.
  if (header.segment_data_size != 0 &&
      !range_fits(header.segment_base_offset, header.segment_data_size, file.size())) {
    return corrupt(16, "segments inside the file's {} bytes, found {} bytes from {} on", file.size(),
                   header.segment_data_size, header.segment_base_offset);
  }
  if (header.segment_base_offset != 0 && header.segment_base_offset < header.program_size) {
    return corrupt(16, "segments behind the program's {} bytes, found them from {} on", header.program_size,
                   header.segment_base_offset);
  }
  return header;
}

void write_extended_header(const ExtendedHeader& header, std::span<std::byte> out) {
  const auto put = [&](std::size_t offset, const auto& value) {
    std::memcpy(out.data() + offset, &value, sizeof(value));
  };
  std::memcpy(out.data(), ExtendedHeader::kMagic.data(), ExtendedHeader::kMagic.size());
  put(4, header.length);
  put(8, header.program_size);
  put(16, header.segment_base_offset);
  put(24, header.segment_data_size);
}

}  // namespace etstream
