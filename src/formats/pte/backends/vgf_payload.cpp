// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/pte/backends/payload_header.h"
#include "formats/pte/backends/payload_readers.h"

namespace etstream {

Result<std::optional<BackendPayload>> read_vgf_payload(const ByteSource& payload, const std::string& name) {
  constexpr std::size_t kHeaderSize = 128;
  constexpr std::string_view kMajorVersion("\0", 1);
  constexpr std::string_view kOldMagic = "\xC3\xD2\xE1\xF0";
  ETSTREAM_ASSIGN(const PayloadHeader header, PayloadHeader::read(payload, kHeaderSize, name));
  const bool has_magic = header.has(0, "VGF1") || header.has(0, kOldMagic);
  if (!has_magic || !header.has(8, kMajorVersion)) return std::optional<BackendPayload>();
  ETSTREAM_TRY(header.check_size());
  const std::string version =
      text("0.{}.{}", int{header.number<std::uint8_t>(9)}, int{header.number<std::uint8_t>(10)});
  BackendPayload out{
      "sections (VGF1)",
      {},
      {{"version", version}, {"vulkan_headers", std::int64_t{header.number<std::uint16_t>(4)}}}};
  constexpr std::array<std::string_view, 4> kSections{"modules", "model_sequence", "model_resources",
                                                      "constants"};
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    const std::size_t position = 16 + 16 * i;
    const PayloadPart part{std::string(kSections[i]), header.number<std::uint64_t>(position),
                           header.number<std::uint64_t>(position + 8)};
    ETSTREAM_TRY(header.check_range(position, part.name, part.offset, part.size));
    out.parts.push_back(part);
  }
  return std::optional(std::move(out));
}

}  // namespace etstream
