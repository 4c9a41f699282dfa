// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/flatbuffer_text.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>

#include <charconv>
#include <mutex>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/generate_text.h"
#include "flatbuffer/key_order.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_source.h"
#include "flatbuffer/vector_alignment.h"

namespace etstream {
namespace {

using ByteVector = std::vector<std::byte>;
using ParserPointer = std::unique_ptr<flatbuffers::Parser>;

/// The most bytes that a parser may have built to be kept for later calls.
constexpr std::size_t kLargestKept = std::size_t{1} << 20;

/// Checks the fields' ids, which the parser uses unchecked.
bool has_sound_ids(const reflection::Object& object) {
  std::vector<bool> seen(object.fields()->size());
  for (const reflection::Field* field : *object.fields()) {
    if (field->id() >= seen.size() || seen[field->id()]) return false;
    seen[field->id()] = true;
  }
  return true;
}

/// Gives a field what the parser loses when it reads a binary schema: it reads defaults as signed integers
/// and with 16 digits behind the point, and ignores "deprecated".
void restore(const reflection::Field& field, flatbuffers::FieldDef& parsed) {
  parsed.deprecated = field.deprecated();
  const reflection::BaseType type = field.type()->base_type();
  if (type == reflection::ULong) {
    parsed.value.constant = std::to_string(static_cast<std::uint64_t>(field.default_integer()));
  } else if (type == reflection::Float || type == reflection::Double) {
    parsed.value.constant = exact_text(field.default_real());
  }
}

void lower_alignment(flatbuffers::FieldDef& field) {
  flatbuffers::Value* alignment = field.attributes.Lookup("force_align");
  if (!alignment) return;
  std::uint32_t value = 0;
  std::from_chars(alignment->constant.data(), alignment->constant.data() + alignment->constant.size(), value);
  if (value > kLargestParserAlignment) alignment->constant = std::to_string(kLargestParserAlignment);
}

/// Returns whether all fields fit into a table's 64 KiB: the parser ends the process if they don't.
bool fits_in_table(const flatbuffers::StructDef& table) {
  std::uint64_t size = 32;  // what is before the fields, and what aligns those of each size
  for (const flatbuffers::FieldDef* field : table.fields.vec) {
    const flatbuffers::Type& type = field->value.type;
    size += flatbuffers::InlineSize(type) +
            (flatbuffers::IsStruct(type) ? flatbuffers::InlineAlignment(type) : 0);
  }
  return table.fixed || size < (1 << 16);
}

/// Returns the name "TABLE.FIELD" of a field with nested_flatbuffer or flexbuffer; empty if there is none.
std::string nested_field_of(const flatbuffers::Parser& parser) {
  std::string out;
  for (const flatbuffers::StructDef* table : parser.structs_.vec) {
    for (const flatbuffers::FieldDef* field : table->fields.vec) {
      if (field->nested_flatbuffer || field->flexbuffer) out = text("{}.{}", table->name, field->name);
    }
  }
  return out;
}

/// Makes a parser. The schema's vectors have no force_align over kLargestParserAlignment, and are not sorted.
/// The schema has been verified, and has a root_type; `path` is what messages call it.
Result<ParserPointer> make_parser(const ByteVector& binary_schema, const std::string& path) {
  auto parser = std::make_unique<flatbuffers::Parser>(parser_options());
  const reflection::Schema& schema = *reflection::GetSchema(binary_schema.data());
  for (const reflection::Object* object : *schema.objects()) {
    if (!has_sound_ids(*object)) {
      return error_in(ErrorCode::kCorrupt, path, "{} has not one field for each id",
                      quote(object->name()->string_view()));
    }
  }
  // Given bytes instead of an object, the parser would verify them each time, and a new parser is made after
  // each JSON that does not parse.
  if (!parser->Deserialize(&schema)) {
    return error_in(ErrorCode::kUnsupported, path, "a binary schema that FlatBuffers' parser does not take");
  }
  for (const reflection::Object* object : *schema.objects()) {
    const flatbuffers::StructDef& table = *parser->structs_.Lookup(object->name()->str());
    for (const reflection::Field* field : *object->fields()) {
      flatbuffers::FieldDef& parsed = *table.fields.Lookup(field->name()->str());
      restore(*field, parsed);
      lower_alignment(parsed);
    }
    if (!fits_in_table(table)) {
      return error_in(ErrorCode::kUnsupported, path, "{} has fields for more than the 64 KiB of a table",
                      quote(object->name()->string_view()));
    }
  }
  const bool has_keys = leave_unsorted(*parser);
  if (const std::string nested = nested_field_of(*parser); has_keys && !nested.empty()) {
    return error_in(ErrorCode::kUnsupported, path, "a key in a schema with a flatbuffer in another, {}",
                    nested);
  }
  return parser;
}

}  // namespace

struct FlatbufferText::State : LoadedSchema {
  State(LoadedSchema loaded, std::string schema_path)
      : LoadedSchema(std::move(loaded)), path(std::move(schema_path)) {}

  /// Returns a parser that has parsed nothing but the schema, or other JSON without an error. A parser keeps
  /// a state, so each serves one call at a time.
  Result<ParserPointer> take_parser() const {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto out = std::move(idle.back());
        idle.pop_back();
        return out;
      }
    }
    return make_parser(binary, path);
  }
  /// Keeps a parser for the next call. A parser that has failed must not be given back, as it keeps the state
  /// of its failure.
  void give_back(ParserPointer parser) const {
    if (parser->builder_.GetSize() > kLargestKept) return;
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(parser));
  }

  const std::string path;
  bool raises_alignments = false;
  std::string nested_field;
  mutable std::mutex mutex;
  mutable std::vector<ParserPointer> idle;
};

Result<FlatbufferText> FlatbufferText::open(const std::string& schema,
                                            const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<FlatbufferText> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(schema, include_folders));
    auto state = std::make_shared<State>(std::move(loaded), schema);
    ETSTREAM_ASSIGN(auto parser, state->take_parser());
    state->nested_field = nested_field_of(*parser);
    state->give_back(std::move(parser));
    state->raises_alignments = exceeds_parser_alignment(state->schema);
    if (state->raises_alignments && !state->nested_field.empty()) {
      return error_in(ErrorCode::kUnsupported, schema,
                      "a force_align over {} in a schema with a flatbuffer in another, {}",
                      kLargestParserAlignment, state->nested_field);
    }
    return FlatbufferText(std::move(state));
  });
}

Result<ByteVector> FlatbufferText::compile(std::string_view json, const std::string& name) const {
  return without_exceptions([&]() -> Result<ByteVector> {
    if (json.size() > kLargestJson) {
      return error_in(ErrorCode::kTooLarge, name, "{} of JSON, at most {} can be compiled",
                      readable_size(json.size()), readable_size(kLargestJson));
    }
    if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
      return error_in(ErrorCode::kCorrupt, name, "expected JSON, found a zero byte at offset {}", zero);
    }
    ETSTREAM_ASSIGN(auto parser, state_->take_parser());
    parser->opts.strict_json = false;  // as names need no quotes
    if (!parser->ParseJson(std::string(json).c_str(), name.c_str())) return parser_error(*parser);
    const auto built =
        std::as_bytes(std::span(parser->builder_.GetBufferPointer(), parser->builder_.GetSize()));
    ByteVector out(built.begin(), built.end());
    sort_by_keys(*parser, out);
    state_->give_back(std::move(parser));
    if (!state_->raises_alignments) return out;
    return raise_alignments(std::move(out), state_->schema, name);
  });
}

Result<std::string> FlatbufferText::decompile(std::span<const std::byte> flatbuffer,
                                              const DecompileOptions& options,
                                              const std::string& name) const {
  return without_exceptions([&]() -> Result<std::string> {
    const State& state = *state_;
    if (!state.nested_field.empty()) {
      return error_in(ErrorCode::kUnsupported, name,
                      "{} has a flatbuffer in another, {}, which is not checked and so not made text",
                      state.path, state.nested_field);
    }
    if (options.identifier && state.schema.identifier().empty()) {
      return with_advice(
          error_in(ErrorCode::kUnsupported, name, "{} has no file_identifier to look for", state.path),
          {AdviceTerm::kNoIdentifier, " does without"});
    }
    // This is a copy, so that the bytes that were checked are the bytes that are read.
    ByteVector bytes;
    bytes.assign(flatbuffer.begin(), flatbuffer.end());
    if (options.size_prefixed) {
      ETSTREAM_ASSIGN(const ByteSource plain, without_size_prefix(ByteSource::memory(flatbuffer), name));
      ETSTREAM_TRY(plain.read_at(0, bytes));
    }
    ETSTREAM_ASSIGN(const auto view,
                    FlatbufferView::open(state.schema, ByteSource::memory(bytes), name, !options.identifier));
    ETSTREAM_TRY(verify_flatbuffer(view, {.walks_bytes = true, .typed_unions = true}));

    ETSTREAM_ASSIGN(auto parser, state.take_parser());
    parser->opts.strict_json = options.strict_json;
    parser->opts.output_default_scalars_in_json = options.defaults;
    std::string out;
    if (!generate_text(*parser, bytes.data(), out)) {
      return error_in(ErrorCode::kCorrupt, name,
                      "a string that is not UTF-8, or nothing in a vector of unions");
    }
    state.give_back(std::move(parser));
    return out;
  });
}

const std::string& FlatbufferText::path() const noexcept { return state_->path; }
const std::string& FlatbufferText::file_extension() const noexcept { return state_->file_extension; }

}  // namespace etstream
