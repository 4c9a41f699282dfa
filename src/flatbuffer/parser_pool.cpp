// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/parser_pool.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>

#include <array>
#include <charconv>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

/// One that has built more than this is let go with its memory.
constexpr std::size_t kLargestKept = std::size_t{1} << 20;

flatbuffers::IDLOptions parser_options() {
  flatbuffers::IDLOptions out;
  out.no_warnings = true;
  out.lang_to_generate = flatbuffers::IDLOptions::kBinary;  // which has all that a schema can say
  return out;
}

/// The parser takes fields to their ids without a look at them.
bool has_sound_ids(const reflection::Object& object) {
  std::vector<bool> seen(object.fields()->size());
  for (const reflection::Field* field : *object.fields()) {
    if (field->id() >= seen.size() || seen[field->id()]) return false;
    seen[field->id()] = true;
  }
  return true;
}

std::string exact(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  return {digits.begin(), end};
}

/// From a binary schema the parser reads defaults as signed integers and with 16 digits behind the point, and
/// not what is deprecated.
void restore(const reflection::Field& field, flatbuffers::FieldDef& parsed) {
  parsed.deprecated = field.deprecated();
  switch (field.type()->base_type()) {
    case reflection::ULong:
      parsed.value.constant = std::to_string(static_cast<std::uint64_t>(field.default_integer()));
      break;
    case reflection::Float:
    case reflection::Double:
      parsed.value.constant = exact(field.default_real());
      break;
    default:
      break;
  }
}

void lower_alignment(flatbuffers::FieldDef& field) {
  flatbuffers::Value* alignment = field.attributes.Lookup("force_align");
  if (!alignment) return;
  std::uint32_t value = 0;
  std::from_chars(alignment->constant.data(), alignment->constant.data() + alignment->constant.size(), value);
  if (value > kLargestParserAlignment) alignment->constant = std::to_string(kLargestParserAlignment);
}

}  // namespace

ParserPool::ParserPool(std::vector<std::byte> binary_schema, std::string path)
    : binary_schema_(std::move(binary_schema)), path_(std::move(path)) {}

ParserPool::~ParserPool() = default;

Result<std::unique_ptr<ParserPool>> ParserPool::open(std::vector<std::byte> binary_schema,
                                                     const std::string& path) {
  std::unique_ptr<ParserPool> out(new ParserPool(std::move(binary_schema), path));
  ETSTREAM_ASSIGN(auto parser, out->make_parser());
  for (const flatbuffers::StructDef* table : parser->structs_.vec) {
    for (const flatbuffers::FieldDef* field : table->fields.vec) {
      if (field->nested_flatbuffer || field->flexbuffer)
        out->nested_field_ = text("{}.{}", table->name, field->name);
    }
  }
  out->give_back(std::move(parser));
  return out;
}

Result<std::unique_ptr<flatbuffers::Parser>> ParserPool::make_parser() const {
  auto parser = std::make_unique<flatbuffers::Parser>(parser_options());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(binary_schema_.data());
  const reflection::Schema& schema = *reflection::GetSchema(bytes);
  for (const reflection::Object* object : *schema.objects()) {
    if (!has_sound_ids(*object)) {
      return make_error(ErrorCode::kCorrupt, "{}: {} has not one field for each id", path_,
                        quote(object->name()->string_view()));
    }
  }
  if (!parser->Deserialize(bytes, binary_schema_.size())) {
    return make_error(ErrorCode::kUnsupported, "{}: a binary schema that FlatBuffers' parser does not take",
                      path_);
  }
  if (!parser->root_struct_def_)
    return make_error(ErrorCode::kUnsupported, "{}: a schema without a root_type", path_);
  for (const reflection::Object* object : *schema.objects()) {
    const flatbuffers::StructDef& table = *parser->structs_.Lookup(object->name()->str());
    for (const reflection::Field* field : *object->fields()) {
      flatbuffers::FieldDef& parsed = *table.fields.Lookup(field->name()->str());
      restore(*field, parsed);
      lower_alignment(parsed);
    }
  }
  return parser;
}

Result<std::unique_ptr<flatbuffers::Parser>> ParserPool::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto out = std::move(idle_.back());
      idle_.pop_back();
      return out;
    }
  }
  return make_parser();
}

void ParserPool::give_back(std::unique_ptr<flatbuffers::Parser> parser) const {
  if (parser->builder_.GetSize() > kLargestKept) return;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(parser));
}

}  // namespace etstream
