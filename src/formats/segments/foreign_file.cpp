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
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "formats/segments/json_content.h"
#include "formats/segments/known_kind.h"

namespace etstream {
namespace {

constexpr std::size_t kMostRecognized = 1024;
constexpr std::size_t kEndBytes = 8;
constexpr std::string_view kWhiteSpace = " \t\r\n";

constexpr std::string_view kAgain = "download it again, and look at the address and at who may read it";
constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kTorchSaves = "save a dict of tensors with torch.save";

constexpr std::string_view kPage = "is an HTML page, as servers send in place of a file that they don't give";
constexpr std::string_view kPickle = "is a pickle, which etstream never executes";
constexpr std::string_view kStoreError = "is an error of an object store";
constexpr std::string_view kJsonError = "is an error as JSON";

/// The place where a format has its magic.
enum class Place {
  kBeginning,
  kFour,  // at offset 4
  kEnd,   // where the last 8 bytes begin
  kWords  // behind white space, in letters of any case
};

/// A file that is no model, by its magic.
struct Foreign {
  Place place;
  std::string_view magic;
  std::string_view what;
  std::string_view advice;
  bool is_quoted = false;  // the message has an excerpt
};

constexpr auto kForeign = std::to_array<Foreign>({
    {Place::kBeginning, "\x1f\x8b\x08", "is compressed with gzip", kUnpack},
    {Place::kBeginning, "\x28\xb5\x2f\xfd", "is compressed with zstd", kUnpack},
    {Place::kBeginning, "\x93NUMPY", "is a NumPy array (.npy)", "write its arrays to a safetensors file"},
    {Place::kBeginning, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
     "is a file of torch before 1.6, a pickle without an archive around it",
     "load it in torch and save it again"},
    {Place::kBeginning, "\x80\x04\x95", kPickle, kTorchSaves},
    {Place::kBeginning, "\x80\x05\x95", kPickle, kTorchSaves},
    {Place::kFour, "TFL3", "is a model of TensorFlow Lite", "give one of ExecuTorch"},
    {Place::kEnd, "CWPX", "is a weight cache of XNNPACK, which a device writes for itself",
     "give the program or its weights"},
    {Place::kWords, "<!doctype html", kPage, kAgain},
    {Place::kWords, "<html", kPage, kAgain},
    {Place::kWords, "<head", kPage, kAgain},
    {Place::kWords, "<body", kPage, kAgain},
    {Place::kWords, "<?xml version=\"1.0\"?><error", kStoreError, kAgain, true},
    {Place::kWords, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<error", kStoreError, kAgain, true},
    {Place::kWords, "<error", kStoreError, kAgain, true},
    {Place::kWords, "{\"error\"", kJsonError, kAgain, true},
    {Place::kWords, "{\"message\"", kJsonError, kAgain, true},
    {Place::kWords, "{\"detail\"", kJsonError, kAgain, true},
});

bool starts_with_words(std::string_view text, std::string_view lower_case) {
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

/// Describes the pointer that Git has in place of a large file: "version ...\noid sha256:...\nsize
/// 4943000480".
std::string describe_lfs_pointer(std::string_view begin) {
  constexpr std::string_view kSize = "\nsize ";
  std::uint64_t size = 0;
  const auto at = begin.find(kSize);
  if (at != std::string_view::npos) {
    const std::string_view digits = begin.substr(at + kSize.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), size);
  }
  return text("is a Git LFS pointer, which stands for {}",
              size == 0 ? "the file" : text("the file of {} bytes", size));
}

bool is_plain_text(std::string_view bytes) {
  constexpr std::size_t kLeast = 8;
  return bytes.size() >= kLeast && is_utf8(bytes) && std::ranges::all_of(bytes, [](char c) {
           return static_cast<unsigned char>(c) >= ' ' || kWhiteSpace.find(c) != std::string_view::npos;
         });
}

/// Returns the error about a file that begins and ends so; nothing if it may be the expected file.
std::optional<Error> describe_foreign(const std::string& name, std::string_view begin, std::string_view end,
                                      bool is_whole) {
  const auto error = [&](std::string_view what, std::string_view advice) {
    return with_advice(error_in(ErrorCode::kUnsupported, name, "{}", what), {std::string(advice)});
  };
  if (begin.empty()) return error("is empty, as a download is that failed", "get it again");
  const std::string_view words = trimmed(begin);
  if (words.starts_with("version https://git-lfs.github.com/spec/")) {
    return error(describe_lfs_pointer(words), "get the file itself with git lfs pull");
  }
  const bool is_known = json_content(words).value_or(JsonContent::kOther) != JsonContent::kOther;
  const auto is_there = [&](const Foreign& foreign) {
    switch (foreign.place) {
      case Place::kBeginning:
        return begin.starts_with(foreign.magic);
      case Place::kFour:
        return begin.size() > 4 && begin.substr(4).starts_with(foreign.magic);
      case Place::kEnd:
        return end.starts_with(foreign.magic);
      case Place::kWords:
        return !is_known && starts_with_words(words, foreign.magic);
    }
    return false;
  };
  const auto* const found = std::ranges::find_if(kForeign, is_there);
  if (found != kForeign.end()) {
    return error(found->is_quoted ? text("{}, {}", found->what, excerpt(words)) : std::string(found->what),
                 found->advice);
  }
  if (!is_whole || words.starts_with('{') || words.starts_with('[') || !is_plain_text(words)) {
    return std::nullopt;
  }
  return error(text("is text, {}", excerpt(words)), kAgain);
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
    if (known_kind(begin)) return {};
    ETSTREAM_ASSIGN(begin, read(kMostRecognized));
    ETSTREAM_ASSIGN(const std::string end, read(kEndBytes, true));
    auto found = describe_foreign(file.name(), begin, end, begin.size() == file.size());
    return found ? *std::move(found) : Result<void>();
  });
}

}  // namespace etstream
