// SPDX-License-Identifier: BSD-3-Clause
#include "format/file_kind.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/text.h"
#include "base/try.h"

namespace etstream {

Result<FileKind> file_kind(const ByteSource& file) {
  constexpr std::uint64_t kOffset = 4;
  constexpr std::string_view kSafetensorsBegin("\0\0\0\0{", 5);
  std::array<char, 5> bytes{};
  const auto there = std::min<std::uint64_t>(file.size(), kOffset + bytes.size());
  if (there < kOffset + 4) {
    return make_error(ErrorCode::kUnsupported, file.name(), ": is ", counted(file.size(), "byte"),
                      " long, expected a .pte, .ptd or .bpte file");
  }
  const auto found = std::span(bytes).first(static_cast<std::size_t>(there - kOffset));
  ETSTREAM_TRY(file.read_at(kOffset, std::as_writable_bytes(found)));
  if (std::string_view(bytes.data(), bytes.size()) == kSafetensorsBegin) return FileKind::kSafetensors;
  const std::string_view identifier(bytes.data(), 4);
  if (identifier == "ET12") return FileKind::kProgram;
  if (identifier == "BP08") return FileKind::kBundledProgram;
  if (identifier == "BPS1") return FileKind::kSegmentedBundle;
  if (identifier == "FT01") return FileKind::kTensorData;
  return make_error(
      ErrorCode::kUnsupported, file.name(), ": offset ", kOffset,
      ": expected the identifier of a program (ET12), of a bundle (BP08, BPS1) or of named data ",
      "(FT01), found ", quote(identifier));
}

}  // namespace etstream
