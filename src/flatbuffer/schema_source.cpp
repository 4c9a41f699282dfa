// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema_source.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>
#include <flatbuffers/util.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"

namespace etstream {
namespace {

using ByteVector = std::vector<std::byte>;

Result<ByteVector> content_of_schema(const std::string& path) {
  ETSTREAM_ASSIGN(const ByteSource source, ByteSource::file(path));
  if (source.size() > kLargestSchema) {
    return error_in(ErrorCode::kTooLarge, path, "{}, a schema has at most {}", readable_size(source.size()),
                    readable_size(kLargestSchema));
  }
  ByteVector out(source.size());
  ETSTREAM_TRY(source.read_at(0, out));
  return out;
}

/// The most namespaces of a schema: FlatBuffers' parser looks each one up among all that came before.
constexpr std::size_t kMostNamespaces = 8192;

std::size_t count_namespaces(std::span<const std::byte> schema) {
  const std::string_view words(reinterpret_cast<const char*>(schema.data()), schema.size());
  constexpr std::string_view kWord = "namespace";
  std::size_t out = 0;
  for (std::size_t at = words.find(kWord); at != std::string_view::npos; at = words.find(kWord, at + 1))
    ++out;
  return out;
}

Error too_many_namespaces(const std::string& path) {
  return error_in(ErrorCode::kTooLarge, path,
                  "the schema has more than {} namespaces, which takes too long to parse", kMostNamespaces);
}

/// A bound on the bytes that are read of included files. Each include reads some of the files before it
/// again.
struct IncludeWork {
  static constexpr std::uint64_t kMostTimes = 256;

  bool admits(const std::string& path, std::span<const std::byte> content) {
    constexpr std::uint64_t kOpening = 4096;  // takes as long as so many bytes
    read += content.size() + kOpening;
    if (seen.insert(path).second) {
      given += content.size() + kOpening;
      namespaces += count_namespaces(content);
    }
    return read <= kMostTimes * given;
  }

  std::set<std::string> seen;
  std::uint64_t given = 0;
  std::uint64_t read = 0;
  std::size_t namespaces = 0;  // in files that were seen
};

/// Makes FlatBuffers read the files that this thread's schemas include as content_of_schema() does, while one
/// lives: they must be regular and not too large, and are noted as inputs. FlatBuffers' own functions would
/// wait for a FIFO.
class CheckedIncludes {
 public:
  CheckedIncludes() {
    before();
    if (living++ == 0) work = {};
  }
  CheckedIncludes(const CheckedIncludes&) = delete;
  CheckedIncludes& operator=(const CheckedIncludes&) = delete;
  ~CheckedIncludes() { --living; }

  /// Returns the error of an existing file that could not be loaded, if there is one.
  [[nodiscard]] static std::optional<Error> take_error() { return std::exchange(error, std::nullopt); }

 private:
  struct Functions {
    flatbuffers::LoadFileFunction load;
    flatbuffers::FileExistsFunction exists;
  };

  /// Returns FlatBuffers' own functions, which stay in force for schemas that others parse.
  static const Functions& before() {
    static const Functions kBefore = {flatbuffers::SetLoadFileFunction(&load),
                                      flatbuffers::SetFileExistsFunction(&exists)};
    return kBefore;
  }
  static bool exists(const char* path) {
    if (living == 0) return before().exists(path);
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }
  static bool load(const char* path, bool binary, std::string* out) {
    if (living == 0) return before().load(path, binary, out);
    auto content = content_of_schema(path);
    if (!content) {
      // The parser itself reports that there is no such file, with the line that asks for it.
      if (content.error().code != ErrorCode::kNotFound) error = content.error();
      return false;
    }
    if (!work.admits(path, *content)) {
      error = error_in(ErrorCode::kTooLarge, path,
                       "the schema includes so many files, or one so often, that reading it again at each "
                       "include, as FlatBuffers' parser does, takes more than {} times its size",
                       IncludeWork::kMostTimes);
      return false;
    }
    if (work.namespaces > kMostNamespaces) {
      error = too_many_namespaces(path);
      return false;
    }
    out->assign(reinterpret_cast<const char*>(content->data()), content->size());
    return true;
  }

  static inline thread_local int living = 0;
  static inline thread_local IncludeWork work;
  static inline thread_local std::optional<Error> error;
};

bool is_binary(std::span<const std::byte> schema) {
  constexpr std::size_t kAt = sizeof(flatbuffers::uoffset_t);
  return schema.size() >= kAt + flatbuffers::kFileIdentifierLength &&
         flatbuffers::BufferHasIdentifier(schema.data(), reflection::SchemaIdentifier());
}

/// Refuses defaults that a binary schema can't hold, as it stores them as signed integers.
Result<void> check_defaults(const flatbuffers::Parser& parser, const std::string& path) {
  for (const flatbuffers::StructDef* table : parser.structs_.vec) {
    for (const flatbuffers::FieldDef* field : table->fields.vec) {
      std::uint64_t number = 0;
      if (field->value.type.base_type == flatbuffers::BASE_TYPE_ULONG &&
          flatbuffers::StringToNumber(field->value.constant.c_str(), &number) &&
          number > std::numeric_limits<std::int64_t>::max()) {
        return error_in(ErrorCode::kUnsupported, path, "{}.{} has a default over 2^63 - 1", table->name,
                        field->name);
      }
    }
  }
  return {};
}

}  // namespace

Result<ByteVector> compile_schema(const std::string& path, const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ByteVector> {
    ETSTREAM_ASSIGN(ByteVector source, content_of_schema(path));
    if (is_binary(source)) return source;
    if (count_namespaces(source) > kMostNamespaces) return too_many_namespaces(path);
    const std::string words(reinterpret_cast<const char*>(source.data()), source.size());
    if (const std::size_t zero = words.find('\0'); zero != std::string::npos) {
      return error_in(ErrorCode::kCorrupt, path,
                      "neither a schema's text nor a binary schema: a zero byte at offset {}", zero);
    }
    const std::string own_folder = flatbuffers::StripFileName(path);
    std::vector<const char*> folders;
    folders.reserve(include_folders.size() + 2);
    for (const std::string& folder : include_folders) folders.push_back(folder.c_str());
    folders.push_back(own_folder.c_str());
    folders.push_back(nullptr);

    flatbuffers::Parser parser(parser_options());
    const CheckedIncludes checked;
    const bool parsed = parser.Parse(words.c_str(), folders.data(), path.c_str());
    if (auto error = CheckedIncludes::take_error()) return *std::move(error);
    if (!parsed) return parser_error(parser);
    ETSTREAM_TRY(check_defaults(parser, path));
    parser.Serialize();
    const auto bytes =
        std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
    return ByteVector(bytes.begin(), bytes.end());
  });
}

Result<LoadedSchema> load_schema(const std::string& path, const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<LoadedSchema> {
    LoadedSchema out;
    ETSTREAM_ASSIGN(out.binary, compile_schema(path, include_folders));
    auto loaded = Schema::from_binary(out.binary);
    if (!loaded) return error_in(loaded.error().code, path, "{}", loaded.error().message);
    out.schema = std::move(loaded).value();
    const auto* extension = reflection::GetSchema(out.binary.data())->file_ext();
    out.file_extension = extension && extension->size() > 0 ? extension->str() : "bin";
    return out;
  });
}

flatbuffers::IDLOptions parser_options() {
  flatbuffers::IDLOptions out;
  out.no_warnings = true;
  out.binary_schema_builtins = true;                        // force_align
  out.lang_to_generate = flatbuffers::IDLOptions::kBinary;  // which has all that a schema can say
  return out;
}

Error parser_error(const flatbuffers::Parser& parser) {
  // The message is "/WHOLE/PATH/OF/FILE:LINE: COLUMN: error: WHAT"; without a file, it begins with LINE.
  constexpr std::string_view kBeforeWhat = ": error: ";
  const std::string& file = parser.file_being_parsed_;
  std::string_view rest = parser.error_;
  if (!file.empty()) {
    const std::string whole = flatbuffers::AbsolutePath(file) + ':';
    if (rest.starts_with(whole)) rest.remove_prefix(whole.size());
  }
  const std::string_view line = rest.substr(0, rest.find(':'));
  if (const std::size_t at = rest.find(kBeforeWhat); at != std::string_view::npos) {
    rest.remove_prefix(at + kBeforeWhat.size());
  }
  return make_error(ErrorCode::kCorrupt, "{}{}line {}: {}", file, file.empty() ? "" : ": ", line,
                    printable(rest));
}

}  // namespace etstream
