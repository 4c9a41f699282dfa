// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/try.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"

namespace etstream {

Result<std::optional<BackendPayload>> read_qnn_payload(const ByteSource& payload, const std::string& name) {
  constexpr std::size_t kHeaderSize = 256;
  constexpr std::string_view kMagic = "\xCD\xAB\x78\x56";
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kHeaderSize, name));
  if (!header.has(0, kMagic)) return std::optional<BackendPayload>();
  ETSTREAM_TRY(header.check_size());
  const auto size = header.number<std::uint64_t>(12);
  ETSTREAM_TRY(header.check_range(12, "a context binary", kHeaderSize, size));
  return std::optional(BackendPayload{"a context binary (0x5678ABCD)",
                                      {{"context_binary", kHeaderSize, size}},
                                      {{"signature", header.number<std::int64_t>(4)}}});
}

}  // namespace etstream
