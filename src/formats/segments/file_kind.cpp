// SPDX-License-Identifier: BSD-3-Clause
#include "formats/segments/file_kind.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/file_kind.h"
#include "etstream/packed_file.h"

namespace etstream {
namespace {

/// Returns `text` without white space and a byte order mark at its beginning.
std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// Returns whether a JSON object or array begins so, rather than a length at the start of a binary format.
bool begins_json(std::string_view text) {
  if (text.empty() || (text.front() != '{' && text.front() != '[')) return false;
  const std::string_view next = without_mark(text.substr(1));
  if (next.empty()) return false;
  if (next.front() == '"' || next.front() == (text.front() == '{' ? '}' : ']')) return true;
  return text.front() == '[' &&
         std::string_view("[{-0123456789tfn").find(next.front()) != std::string_view::npos;
}

/// Returns the keys of a JSON object that `text` begins with, as they are spelled there.
std::vector<std::string_view> json_keys(std::string_view text) {
  std::vector<std::string_view> out;
  if (!text.starts_with('{')) return out;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    if (text[at] != '"') continue;
    const std::size_t begin = ++at;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2U : 1U;
    if (at >= text.size()) break;
    const std::string_view word = text.substr(begin, at - begin);
    if (depth == 1 && without_mark(text.substr(at + 1)).starts_with(':')) out.push_back(word);
  }
  return out;
}

constexpr std::size_t kMostRecognized = 1024;

/// Returns the first `most` bytes of a file, or the last ones, or all if there are fewer.
Result<std::string> read_end(const ByteSource& file, std::size_t most, bool is_last = false) {
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), most)), '\0');
  ETSTREAM_TRY(
      file.read_at(is_last ? file.size() - bytes.size() : 0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

}  // namespace

std::optional<JsonContent> json_content(std::string_view text) {
  const std::string_view words = without_mark(text);
  if (!begins_json(words)) return std::nullopt;
  const auto keys = json_keys(words);
  const auto mentions = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
  if (mentions("weight_map")) return JsonContent::kCheckpointIndex;
  if (mentions("execution_plan")) return JsonContent::kProgram;
  if (mentions("model_type") || mentions("architectures")) return JsonContent::kModelConfig;
  if (words.find("\"inputs\"") != std::string_view::npos) return JsonContent::kTestCases;
  return JsonContent::kOther;
}

std::optional<JsonContent> json_content(const ByteSource& file) {
  const auto begin = read_end(file, kMostRecognized);
  return begin ? json_content(*begin) : std::nullopt;
}

namespace {

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
  const std::string_view words = without_mark(begin);
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
    ETSTREAM_ASSIGN(std::string begin, read_end(file, kKindBytes));
    if (known_kind(begin)) return {};
    ETSTREAM_ASSIGN(begin, read_end(file, kMostRecognized));
    ETSTREAM_ASSIGN(const std::string end, read_end(file, kEndBytes, true));
    auto found = describe_foreign(file.name(), begin, end, begin.size() == file.size());
    return found ? *std::move(found) : Result<void>();
  });
}

namespace {

bool is_among(const Expected& expected, FileKind kind) {
  return std::ranges::find(expected.kinds, kind) != expected.kinds.end();
}

/// Returns the advice for a file of this kind; none if it depends on the caller.
Advice advice_on(FileKind kind, const Expected& expected) {
  switch (kind) {
    case FileKind::kProgram:
      if (is_among(expected, FileKind::kBundledProgram)) return {"bundle it with test cases first"};
      return is_among(expected, FileKind::kTensorData) ? Advice{AdviceTerm::kReadAsCheckpoint} : Advice{};
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
      return {is_among(expected, FileKind::kProgram) ? AdviceTerm::kTakeProgramOut : AdviceTerm::kTakeApart};
    case FileKind::kNativePackage:
      return {AdviceTerm::kTakeApart};
    case FileKind::kFatContainer:
      return {AdviceTerm::kTakePayloadOut};
    case FileKind::kUpdate:
      return {"restore it with the file that it was made from, as ", AdviceTerm::kBase};
    case FileKind::kTensorData:
    case FileKind::kSafetensors:
    case FileKind::kGguf:
    case FileKind::kTorch:
      return {AdviceTerm::kReadAsCheckpoint};
  }
  return {};
}

struct JsonWords {
  std::string_view what;
  Advice advice;
};

JsonWords words_of(JsonContent content) {
  switch (content) {
    case JsonContent::kCheckpointIndex:
      return {"the index of a checkpoint", {AdviceTerm::kReadAsCheckpoint}};
    case JsonContent::kTestCases:
      return {"JSON with test cases", {AdviceTerm::kBundleTestCases}};
    case JsonContent::kProgram:
      return {"a program's description in JSON", {AdviceTerm::kWriteProgram}};
    case JsonContent::kModelConfig:
      return {"the config.json of a model", {"give the folder that it is in"}};
    case JsonContent::kOther:
      return {"JSON", {}};
  }
  return {};
}

Error is_other(const ByteSource& file, std::string_view found, const Expected& expected, Advice advice) {
  return with_advice(
      error_in(ErrorCode::kUnsupported, file.name(), "is {}, expected {}", found, expected.what),
      std::move(advice));
}

}  // namespace

std::string with_article(FileKind kind) {
  const bool has_article =
      kind != FileKind::kTensorData && kind != FileKind::kSafetensors && kind != FileKind::kGguf;
  return text("{}{}", has_article ? "a " : "", describe(kind));
}

Error explain(const ByteSource& file, const Expected& expected, Error error) {
  if (error.code == ErrorCode::kIo || !is_whole_file(file)) return error;
  const auto kind = file_kind(file);
  // A file that parses as JSON is the wrong JSON, and not a text from a server.
  if (kind || !expected.json || error.code != ErrorCode::kInvalidArgument) {
    const auto recognised = refuse_foreign(file);
    if (!recognised && recognised.error().code == ErrorCode::kUnsupported) return recognised.error();
  }
  if (!kind) return explain_json(file, expected, std::move(error));
  if (is_among(expected, *kind)) return error;
  return is_other(file, with_article(*kind), expected, advice_on(*kind, expected));
}

Error explain_json(const ByteSource& file, const Expected& expected, Error error) {
  const auto json = json_content(file);
  if (!json || expected.json == json || expected.json == JsonContent::kOther) return error;
  if (*json == JsonContent::kOther) {
    if (!expected.json) error.message += "; it is JSON";
    return error;
  }
  auto [what, advice] = words_of(*json);
  return is_other(file, what, expected, std::move(advice));
}

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
  ETSTREAM_ASSIGN(const std::string begin, read_end(file, kZipBytes));
  const bool has_folder = first_zip_name(begin).find('/') != std::string_view::npos;
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
  ETSTREAM_ASSIGN(const std::string begin, read_end(file, kKindBytes));
  const auto known = known_kind(begin);
  if (known && *known == FileKind::kNativePackage) return kind_of_zip(file);
  if (known) return *known;
  ETSTREAM_TRY(refuse_foreign(file));
  if (begin.size() < kOffset + 4) {
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
  constexpr std::size_t kMostSpace = 64;
  ETSTREAM_ASSIGN(const std::string begin, read_end(file, kMostSpace));
  const auto first = begin.find_first_not_of(kWhiteSpace);
  return first != std::string::npos && begin[first] == '{' && !file_kind(file).has_value();
}

}  // namespace etstream
