// SPDX-License-Identifier: BSD-3-Clause
#include "ptd/tensor_data_header.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"

namespace etstream {

Result<TensorDataHeader> read_tensor_data_header(const ByteSource& file) {
  TensorDataHeader header;
  std::array<std::byte, TensorDataHeader::kSize> bytes{};
  const std::string name = file.name();
  const auto corrupt = [&]<class... Arguments>(std::size_t offset, Template<Arguments...> words,
                                               const Arguments&... arguments) {
    return unexpected(ErrorCode::kCorrupt, {name, TensorDataHeader::kPosition + offset, "header"}, words,
                      arguments...);
  };
  if (file.size() < TensorDataHeader::kPosition + bytes.size()) {
    return corrupt(0, "{} bytes, found a file of {}", bytes.size(), file.size());
  }
  ETSTREAM_TRY(file.read_at(TensorDataHeader::kPosition, bytes));
  std::array<char, 4> identifier{};
  ETSTREAM_TRY(file.read_at(4, std::as_writable_bytes(std::span(identifier))));
  if (const std::string_view found(identifier.data(), identifier.size()); found != "FT01") {
    return unexpected(ErrorCode::kCorrupt, {name, 4}, "the identifier of tensor data (FT01), found {}",
                      quote(found));
  }
  const auto magic = std::as_bytes(std::span(TensorDataHeader::kMagic));
  if (!std::equal(magic.begin(), magic.end(), bytes.begin())) {
    const std::string_view found(reinterpret_cast<const char*>(bytes.data()), magic.size());
    return corrupt(0, "the magic {}, found {}", quote(TensorDataHeader::kMagic), quote(found));
  }
  const auto field = [&](std::size_t offset, auto& out) {
    std::memcpy(&out, bytes.data() + offset, sizeof(out));
  };
  field(4, header.length);
  field(8, header.flatbuffer_offset);
  field(16, header.flatbuffer_size);
  field(24, header.segment_base_offset);
  field(32, header.segment_data_size);
  if (header.length < TensorDataHeader::kSize) {
    return corrupt(4, "a length of at least {}, found {}", TensorDataHeader::kSize, header.length);
  }
  if (!range_fits(header.flatbuffer_offset, header.flatbuffer_size, file.size())) {
    return corrupt(8, "a flatbuffer inside the file's {} bytes, found {} bytes from {} on", file.size(),
                   header.flatbuffer_size, header.flatbuffer_offset);
  }
  if (!range_fits(header.segment_base_offset, header.segment_data_size, file.size())) {
    return corrupt(24, "segments inside the file's {} bytes, found {} bytes from {} on", file.size(),
                   header.segment_data_size, header.segment_base_offset);
  }
  if (header.segment_base_offset != 0 && header.segment_base_offset < header.flatbuffer_end()) {
    return corrupt(24, "segments behind the flatbuffer, which ends at {}, found them from {} on",
                   header.flatbuffer_end(), header.segment_base_offset);
  }
  return header;
}

std::vector<std::byte> tensor_data_header_bytes(const TensorDataHeader& header) {
  std::vector<std::byte> out(kPaddedTensorDataHeader);
  const auto put = [&](std::size_t offset, const auto& value) {
    std::memcpy(out.data() + offset, &value, sizeof(value));
  };
  std::memcpy(out.data(), TensorDataHeader::kMagic.data(), TensorDataHeader::kMagic.size());
  put(4, header.length);
  put(8, header.flatbuffer_offset);
  put(16, header.flatbuffer_size);
  put(24, header.segment_base_offset);
  put(32, header.segment_data_size);
  return out;
}

}  // namespace etstream
