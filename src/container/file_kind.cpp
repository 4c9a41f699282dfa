// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/file_kind.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

struct KindNames {
  std::string_view name;
  std::string_view description;
};

KindNames names_of(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::kProgram:
      return {"program", "program (ET12)"};
    case FileKind::kBundledProgram:
      return {"bundled_program", "bundled program (BP08)"};
    case FileKind::kSegmentedBundle:
      return {"segmented_bundle", "segmented bundle (BPS1)"};
    case FileKind::kTensorData:
      return {"tensor_data", "tensor data (FT01)"};
    case FileKind::kSafetensors:
      return {"safetensors", "safetensors"};
    case FileKind::kGguf:
      return {"gguf", "GGUF"};
    case FileKind::kFatContainer:
      return {"fat_container", "fat container (NFAT)"};
    case FileKind::kNativePackage:
      return {"native_package", "native package (zip)"};
  }
  std::abort();
}

}  // namespace

std::string_view name_of(FileKind kind) noexcept { return names_of(kind).name; }
std::string_view describe(FileKind kind) noexcept { return names_of(kind).description; }

Result<FileKind> file_kind(const ByteSource& file) {
  constexpr std::size_t kOffset = 4;
  constexpr std::string_view kSafetensors("\0\0\0\0{", 5);
  std::array<char, 9> bytes{};
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), bytes.size()));
  if (there < kOffset + 4) {
    return make_error(ErrorCode::kUnsupported, "{}: is {} long, expected a .pte, .ptd or .bpte file",
                      file.name(), counted(file.size(), "byte"));
  }
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes).first(there))));
  const std::string_view begin(bytes.data(), bytes.size());
  if (begin.starts_with("GGUF")) return FileKind::kGguf;
  if (begin.starts_with("NFAT")) return FileKind::kFatContainer;
  if (begin.starts_with("PK\3\4")) return FileKind::kNativePackage;
  if (begin.substr(kOffset) == kSafetensors) return FileKind::kSafetensors;
  const std::string_view identifier = begin.substr(kOffset, 4);
  if (identifier == "ET12") return FileKind::kProgram;
  if (identifier == "BP08") return FileKind::kBundledProgram;
  if (identifier == "BPS1") return FileKind::kSegmentedBundle;
  if (identifier == "FT01") return FileKind::kTensorData;
  return unexpected(
      ErrorCode::kUnsupported, {file.name(), kOffset},
      "the identifier of a program (ET12), of a bundle (BP08, BPS1) or of tensor data (FT01), found {}",
      quote(identifier));
}

}  // namespace etstream
