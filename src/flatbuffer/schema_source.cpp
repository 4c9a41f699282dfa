// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema_source.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>
#include <flatbuffers/util.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "etstream/byte_source.h"

namespace etstream {
namespace {

using ByteVector = std::vector<std::byte>;

Result<ByteVector> content_of_schema(const std::string& path) {
  ETSTREAM_ASSIGN(const ByteSource source, ByteSource::file(path));
  if (source.size() > kLargestSchema) {
    return make_error(ErrorCode::kTooLarge, path, ": ", readable_size(source.size()),
                      ", a schema has at most ", readable_size(kLargestSchema));
  }
  ByteVector out(source.size());
  ETSTREAM_TRY(source.read_at(0, out));
  return out;
}

bool is_binary(std::span<const std::byte> schema) {
  constexpr std::size_t kAt = sizeof(flatbuffers::uoffset_t);
  return schema.size() >= kAt + flatbuffers::kFileIdentifierLength &&
         flatbuffers::BufferHasIdentifier(schema.data(), reflection::SchemaIdentifier());
}

flatbuffers::IDLOptions schema_options() {
  flatbuffers::IDLOptions out;
  out.no_warnings = true;
  out.binary_schema_builtins = true;                        // force_align
  out.lang_to_generate = flatbuffers::IDLOptions::kBinary;  // which has all that a schema can say
  return out;
}

/// What a binary schema can't say: it has defaults as signed integers.
Result<void> check_defaults(const flatbuffers::Parser& parser, const std::string& path) {
  for (const flatbuffers::StructDef* table : parser.structs_.vec) {
    for (const flatbuffers::FieldDef* field : table->fields.vec) {
      std::uint64_t number = 0;
      if (field->value.type.base_type == flatbuffers::BASE_TYPE_ULONG &&
          flatbuffers::StringToNumber(field->value.constant.c_str(), &number) &&
          number > std::numeric_limits<std::int64_t>::max()) {
        return make_error(ErrorCode::kUnsupported, path, ": ", table->name, ".", field->name,
                          " has a default over 2^63 - 1");
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
    const std::string words(reinterpret_cast<const char*>(source.data()), source.size());
    if (const std::size_t zero = words.find('\0'); zero != std::string::npos) {
      return make_error(ErrorCode::kCorrupt, path,
                        ": neither a schema's text nor a binary schema: a zero byte at offset ", zero);
    }
    const std::string own_folder = flatbuffers::StripFileName(path);
    std::vector<const char*> folders;
    folders.reserve(include_folders.size() + 2);
    for (const std::string& folder : include_folders) folders.push_back(folder.c_str());
    folders.push_back(own_folder.c_str());
    folders.push_back(nullptr);

    flatbuffers::Parser parser(schema_options());
    if (!parser.Parse(words.c_str(), folders.data(), path.c_str())) return parser_error(parser);
    ETSTREAM_TRY(check_defaults(parser, path));
    parser.Serialize();
    const auto bytes =
        std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
    return ByteVector(bytes.begin(), bytes.end());
  });
}

Error parser_error(const flatbuffers::Parser& parser) {
  // "/WHOLE/PATH/OF/FILE:LINE: COLUMN: error: WHAT", or without a file from LINE on.
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
  return make_error(ErrorCode::kCorrupt, file, file.empty() ? "" : ": ", "line ", line, ": ",
                    printable(rest));
}

}  // namespace etstream
