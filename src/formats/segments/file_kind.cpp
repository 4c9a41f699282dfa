// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/file_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/packed_file.h"
#include "formats/segments/expected_kind.h"
#include "formats/segments/foreign_file.h"
#include "formats/segments/known_kind.h"

namespace etstream {
namespace {

struct KnownKind {
  FileKind kind;
  std::string_view ending;  // of the names of its files, where only these have it
  std::string_view name;
  std::string_view description;
  std::size_t position;  // where files have the identifier
  std::string_view identifier;
};

/// The kinds in the order in which they are looked for.
constexpr KnownKind kKnownKinds[] = {
    {FileKind::kGguf, ".gguf", "gguf", "GGUF", 0, "GGUF"},
    {FileKind::kFatContainer, "", "fat_container", "fat container (NFAT)", 0, "NFAT"},
    // The size of the header tells an update from other packed files.
    {FileKind::kUpdate, "", "update", "update (ETZ1)", 0, {"\x5c\x2a\x4d\x18\x30\0\0\0E", 9}},
    {FileKind::kNativePackage, ".ptn", "native_package", "native package (zip)", 0, "PK\3\4"},
    {FileKind::kTorch, ".pth", "torch", "torch file (zip)", 0, "PK\3\4"},
    {FileKind::kSafetensors, ".safetensors", "safetensors", "safetensors", 4, {"\0\0\0\0{", 5}},
    {FileKind::kProgram, ".pte", "program", "program (ET12)", 4, "ET12"},
    {FileKind::kBundledProgram, "", "bundled_program", "bundled program (BP08)", 4, "BP08"},
    {FileKind::kSegmentedBundle, "", "segmented_bundle", "segmented bundle (BPS1)", 4, "BPS1"},
    {FileKind::kTensorData, ".ptd", "tensor_data", "tensor data (FT01)", 4, "FT01"},
};

/// The bytes by which the kinds of zip archives are told apart.
constexpr std::size_t kZipBytes = 512;

const KnownKind& entry_of(FileKind kind) noexcept {
  return *std::ranges::find(kKnownKinds, kind, &KnownKind::kind);
}

}  // namespace

std::string_view name_of(FileKind kind) noexcept { return entry_of(kind).name; }
std::string_view describe(FileKind kind) noexcept { return entry_of(kind).description; }

std::optional<FileKind> known_kind(std::string_view bytes) noexcept {
  for (const KnownKind& kind : kKnownKinds) {
    if (bytes.size() > kind.position && bytes.substr(kind.position).starts_with(kind.identifier)) {
      return kind.kind;
    }
  }
  return std::nullopt;
}

namespace {

/// Returns the name of the first member of a zip archive that begins with `bytes`, as far as they go; "" if
/// there is none.
std::string_view first_zip_name(std::string_view bytes) noexcept {
  constexpr std::size_t kLengthAt = 26;
  constexpr std::size_t kNameAt = 30;
  if (!bytes.starts_with("PK\3\4") || bytes.size() < kNameAt) return {};
  const auto byte = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at]));
  };
  return bytes.substr(kNameAt, byte(kLengthAt) + 256 * byte(kLengthAt + 1));
}

/// Tells an archive of torch, whose members are in a folder, from a package, whose members are in none.
Result<FileKind> kind_of_zip(const ByteSource& file) {
  std::array<char, kZipBytes> bytes{};
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), bytes.size()));
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes).first(there))));
  const bool has_folder = first_zip_name({bytes.data(), there}).find('/') != std::string_view::npos;
  return has_folder ? FileKind::kTorch : FileKind::kNativePackage;
}

}  // namespace

std::optional<FileKind> kind_of_ending(std::string_view path) noexcept {
  const std::string_view name = unpacked_name(path);
  for (const KnownKind& kind : kKnownKinds) {
    if (!kind.ending.empty() && name.ends_with(kind.ending)) return kind.kind;
  }
  return std::nullopt;
}

Result<void> check_ending(const FilePlan& plan, const std::string& path) {
  const auto said = kind_of_ending(path);
  if (!said) return {};
  std::vector<ByteSource> begin;
  std::uint64_t size = 0;
  for (const Extent& extent : plan.extents) {
    if (size >= kZipBytes) break;
    begin.push_back(extent.source);
    size += extent.size();
  }
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::concatenation(std::move(begin)));
  const auto kind = file_kind(file);
  if (!kind || *kind == *said || entry_of(*kind).ending.empty()) return {};
  return error_in(ErrorCode::kInvalidArgument, path, "its ending says {}, but {} would be written",
                  describe(*said), describe(*kind));
}

Result<FileKind> file_kind(const ByteSource& file) {
  constexpr std::size_t kOffset = 4;
  std::array<char, kKindBytes> bytes{};
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), bytes.size()));
  const std::string_view begin(bytes.data(), there);
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes).first(there))));
  const auto known = known_kind(begin);
  if (known && *known == FileKind::kNativePackage) return kind_of_zip(file);
  if (known) return *known;
  ETSTREAM_TRY(refuse_foreign(file));
  if (there < kOffset + 4) {
    return error_in(ErrorCode::kUnsupported, file.name(), "is {} long, expected a .pte, .ptd or .bpte file",
                    counted(file.size(), "byte"));
  }
  return explain_json(
      file, {"a model or weights"},
      unexpected(
          ErrorCode::kUnsupported, {file.name(), kOffset},
          "the identifier of a program (ET12), of a bundle (BP08, BPS1) or of tensor data (FT01), found {}",
          quote(begin.substr(kOffset, 4))));
}

Result<bool> begins_json_object(const ByteSource& file) {
  ETSTREAM_TRY(refuse_foreign(file));
  std::array<char, 64> begin{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), file.size()));
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(begin)).first(n)));
  const std::string_view bytes(begin.data(), n);
  const auto first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{' && !file_kind(file).has_value();
}

}  // namespace etstream
