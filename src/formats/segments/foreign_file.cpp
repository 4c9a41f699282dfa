// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/foreign_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/segments/json_content.h"
#include "formats/segments/known_kind.h"

namespace etstream {
namespace {

constexpr std::size_t kMostRecognized = 1024;
constexpr std::string_view kWhiteSpace = " \t\r\n";
constexpr std::string_view kAgain = "download it again, and look at the address and at who may read it";

/// A file that is no model, and what to do about it.
struct Foreign {
  std::string what;
  std::string_view advice;
};

constexpr std::size_t kEndBytes = 8;
constexpr std::size_t kAtEnd = std::string_view::npos;

/// A format of another tool, by the bytes that it begins with, or that its last 8 bytes begin with.
struct ForeignFormat {
  std::size_t position;  // or kAtEnd
  std::string_view begin;
  std::string_view what;
  std::string_view advice;
};

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kTakeOut = "take the file that is meant out of it";

constexpr std::string_view kTorchSaves = "save a dict of tensors with torch.save";

constexpr auto kForeignFormats = std::to_array<ForeignFormat>({
    {0, "\x1f\x8b\x08", "is compressed with gzip", kUnpack},
    {0, "\x28\xb5\x2f\xfd", "is compressed with zstd", kUnpack},
    {0, {"\xfd\x37zXZ\0", 6}, "is compressed with xz", kUnpack},
    {0, "BZh", "is compressed with bzip2", kUnpack},
    {0, "\x04\x22\x4d\x18", "is compressed with lz4", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c", "is a 7z archive", kTakeOut},
    {0, "Rar!\x1a\x07", "is a RAR archive", kTakeOut},
    {257, "ustar", "is a tar archive", kTakeOut},
    {0, "\x93NUMPY", "is a NumPy array (.npy)", "write its arrays to a safetensors file"},
    {0, "\x89HDF\r\n\x1a\n", "is an HDF5 file, as Keras writes them",
     "write its weights to a safetensors file"},
    {0, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
     "is a file of torch before 1.6, a pickle without an archive around it",
     "load it in torch and save it again"},
    {0, "\x80\x04\x95", "is a pickle, which etstream never executes", kTorchSaves},
    {0, "\x80\x05\x95", "is a pickle, which etstream never executes", kTorchSaves},
    {4, "TFL3", "is a model of TensorFlow Lite", "give one of ExecuTorch"},
    {kAtEnd, "CWPX", "is a weight cache of XNNPACK, which a device writes for itself",
     "give the program or its weights"},
});

bool starts_with_word(std::string_view text, std::string_view lower_case) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= lower_case.size() &&
         std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                    [&](char expected, char c) { return lower(c) == expected; });
}

/// Returns an excerpt of a document for messages.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 100;
  while (!text.empty() && kWhiteSpace.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
  return text.size() <= kMost ? quote(text) : quote(std::string(text.substr(0, kMost)) + "...");
}

/// Returns whether a server's answer is an error, by its keys: the first is one that answers begin with, or
/// any is an error.
bool is_json_error(const std::vector<std::string_view>& keys) {
  constexpr std::string_view kFirst[] = {"message", "detail", "code", "status"};
  const auto begins_with = [](std::string_view key) {
    return [key](std::string_view word) { return starts_with_word(key, word); };
  };
  if (keys.empty()) return false;
  return std::ranges::any_of(kFirst, begins_with(keys.front())) ||
         std::ranges::any_of(keys, [](std::string_view key) { return starts_with_word(key, "error"); });
}

/// Recognises the pointer that Git has in place of a large file: "version ...\noid sha256:...\nsize
/// 4943000480".
Foreign describe_lfs_pointer(std::string_view begin) {
  constexpr std::string_view kSize = "\nsize ";
  std::uint64_t size = 0;
  const auto at = begin.find(kSize);
  if (at != std::string_view::npos) {
    const std::string_view digits = begin.substr(at + kSize.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), size);
  }
  return {text("is a Git LFS pointer, which stands for {}",
               size == 0 ? "the file" : text("the file of {} bytes", size)),
          "get the file itself with git lfs pull"};
}

bool is_plain_text(std::string_view bytes) {
  constexpr std::size_t kLeast = 8;
  return bytes.size() >= kLeast && is_utf8(bytes) && std::ranges::all_of(bytes, [](char c) {
           return static_cast<unsigned char>(c) >= ' ' || kWhiteSpace.find(c) != std::string_view::npos;
         });
}

/// Describes a text that begins so; returns nothing if it may be the expected file.
std::optional<Foreign> describe_text(std::string_view begin, bool is_whole) {
  const std::string_view words = trimmed(begin);
  if (words.starts_with("version https://git-lfs.github.com/spec/")) return describe_lfs_pointer(words);
  for (const std::string_view tag : {"<!doctype html", "<html", "<head", "<body"}) {
    if (starts_with_word(words, tag)) {
      return Foreign{"is an HTML page, as servers send in place of a file that they don't give", kAgain};
    }
  }
  if (words.starts_with("<?xml") || words.starts_with("<Error")) {
    const bool is_error = words.find("<Error") != std::string_view::npos;
    return is_error ? Foreign{text("is an error of an object store, {}", excerpt(words)), kAgain}
                    : Foreign{text("is an XML document, {}", excerpt(words)), "give a model or its weights"};
  }
  const bool is_known = json_content(words).value_or(JsonContent::kOther) != JsonContent::kOther;
  if (!is_known && is_json_error(json_keys(words)))
    return Foreign{text("is an error as JSON, {}", excerpt(words)), kAgain};
  if (!is_whole || words.starts_with('{') || words.starts_with('[') || !is_plain_text(words)) {
    return std::nullopt;
  }
  return Foreign{text("is text, {}", excerpt(words)), kAgain};
}

std::optional<Foreign> describe_foreign(std::string_view begin, std::string_view end, bool is_whole) {
  if (begin.empty()) return Foreign{"is empty, as a download is that failed", "get it again"};
  for (const ForeignFormat& format : kForeignFormats) {
    const bool is_at_end = format.position == kAtEnd;
    if (!is_at_end && begin.size() <= format.position) continue;
    if ((is_at_end ? end : begin.substr(format.position)).starts_with(format.begin)) {
      return Foreign{std::string(format.what), format.advice};
    }
  }
  constexpr std::size_t kZeros = 64;
  if (begin.size() >= kZeros && begin.substr(0, kZeros).find_first_not_of('\0') == std::string_view::npos) {
    return Foreign{"begins with zeros, as a download does that was not finished", "get it again"};
  }
  return describe_text(begin, is_whole);
}

/// Describes a zip archive that begins with an array of NumPy's; returns nothing for others.
std::optional<Foreign> describe_zip(std::string_view begin) {
  if (!first_zip_name(begin).ends_with(".npy")) return std::nullopt;
  return Foreign{"is an archive of NumPy arrays (.npz)", "write its arrays to a safetensors file"};
}

}  // namespace

bool is_whole_file(const ByteSource& file) {
  const SourcePlace place = file.place();
  return place.storage != nullptr && place.begin == 0 && place.end == place.storage->size();
}

Result<void> refuse_foreign(const ByteSource& file) {
  if (!is_whole_file(file)) return {};
  return without_exceptions([&]() -> Result<void> {
    const auto read = [&](std::size_t most, bool from_end = false) -> Result<std::string> {
      std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), most)), '\0');
      ETSTREAM_TRY(
          file.read_at(from_end ? file.size() - bytes.size() : 0, std::as_writable_bytes(std::span(bytes))));
      return bytes;
    };
    ETSTREAM_ASSIGN(std::string begin, read(kKindBytes));
    const auto kind = known_kind(begin);
    if (kind && *kind != FileKind::kNativePackage) return {};
    ETSTREAM_ASSIGN(begin, read(kMostRecognized));
    ETSTREAM_ASSIGN(const std::string end, read(kEndBytes, true));
    const auto found = kind ? describe_zip(begin) : describe_foreign(begin, end, begin.size() == file.size());
    if (!found) return {};
    return with_advice(error_in(ErrorCode::kUnsupported, file.name(), "{}", found->what),
                       {std::string(found->advice)});
  });
}

}  // namespace etstream
