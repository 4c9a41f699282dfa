// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/flatbuffer_text.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>
#include <flatbuffers/reflection_generated.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/backward_builder.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"

namespace etstream {
namespace {

using ByteVector = std::vector<std::byte>;
using ParserPointer = std::unique_ptr<flatbuffers::Parser>;

/// The largest force_align that FlatBuffers' parser, of version 2.0.8, accepts.
constexpr std::uint32_t kLargestParserAlignment = 32;

/// The most bytes that a parser may have built to be kept for later calls.
constexpr std::size_t kLargestKept = std::size_t{1} << 20;

/// An element's key. Integers are in `number`, in their order.
struct Key {
  bool is_there = true;
  std::string_view string = {};
  std::uint64_t number = 0;
  double real = 0;

  /// Compares as flatc does. Strings that are absent come last.
  bool operator<(const Key& other) const {
    if (!is_there || !other.is_there) return is_there;
    return string < other.string || (string == other.string && (number < other.number || real < other.real));
  }
};

/// Reads the key of `type` from its bits, which are those of its default where the file lacks it.
Key scalar_key(const InlineType& type, std::uint64_t bits) {
  if (!type.is_float) {
    return {.number = bits ^ (type.is_signed ? std::uint64_t{1} << (8 * type.width - 1) : 0)};
  }
  if (type.width == sizeof(double)) return {.real = std::bit_cast<double>(bits)};
  return {.real = std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
}

/// Returns the name of the key by which flatc sorts vectors of each table and struct, as the schema has them;
/// empty where it does not sort. Returns nothing for a schema without keys. Later parsers know keys of other
/// kinds, and sort by these themselves.
std::vector<std::string> keys_of(const reflection::Schema& schema) {
  std::vector<std::string> out;
  for (const reflection::Object* object : *schema.objects()) {
    std::string& key = out.emplace_back();
    for (const reflection::Field* field : *object->fields()) {
      const reflection::BaseType kind = field->type()->base_type();
      const bool is_known = flatbuffers::IsScalar(kind) || kind == reflection::String;
      if (field->key() && is_known) key = field->name()->str();
    }
  }
  const bool has_keys = std::ranges::any_of(out, [](const std::string& key) { return !key.empty(); });
  return has_keys ? out : std::vector<std::string>();
}

/// Returns the order into which flatc sorts elements with these keys.
std::vector<std::uint32_t> order_of(const std::vector<Key>& keys) {
  std::vector<std::uint32_t> out(keys.size());
  std::iota(out.begin(), out.end(), 0);
  std::uint64_t left = 64 * std::uint64_t{keys.size()};
  std::vector<std::pair<std::size_t, std::size_t>> ranges{{0, keys.size()}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    if (end - begin < 2) continue;
    if (left < end - begin) {
      std::iota(out.begin(), out.end(), 0);
      std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
      break;
    }
    left -= end - begin;
    std::size_t low = begin + 1;
    std::size_t high = end;
    while (low < high) {
      if (keys[out[begin]] < keys[out[low]]) {
        std::swap(out[low], out[--high]);
      } else {
        ++low;
      }
    }
    std::swap(out[begin], out[low - 1]);
    ranges.emplace_back(begin, low - 1);
    ranges.emplace_back(high, end);
  }
  return out;
}

void put_number(std::span<std::byte> bytes, std::uint64_t at, std::uint64_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  std::memcpy(bytes.data() + at, &number, sizeof(number));
}

/// Makes `parser` leave vectors in the order of the JSON, for sort_by_keys().
void leave_unsorted(flatbuffers::Parser& parser) {
  for (flatbuffers::StructDef* type : parser.structs_.vec) {
    for (const flatbuffers::FieldDef* field : type->fields.vec) {
      const flatbuffers::BaseType kind = field->value.type.base_type;
      const bool is_known = flatbuffers::IsScalar(kind) || kind == flatbuffers::BASE_TYPE_STRING;
      if (field->key && is_known) type->has_key = false;
    }
  }
}

/// The vectors of a flatbuffer whose elements have keys.
class KeyedVectors : public FlatbufferVisitor {
 public:
  /// `bytes` are those of the view, and `keys` those of keys_of().
  KeyedVectors(const FlatbufferView& view, std::span<std::byte> bytes, const std::vector<std::string>& keys)
      : view_(view), bytes_(bytes), keys_(keys) {}

  Result<void> begin_vector(const TableType& /*declared*/, const FieldType& field,
                            const VectorView& /*types*/, const VectorView& vector) {
    if (field.kind == FieldKind::kTableVector) add(vector, field, field.type);
    return {};
  }
  Result<void> inline_vector(const VectorView& vector, const FieldType& field) {
    if (field.structure) add(vector, field, *field.structure);
    return {};
  }

  /// Sorts them, once they are known. No key lies in a vector's own bytes of offsets.
  Result<void> sort() {
    for (const auto& [vector, field] : found_) {
      ETSTREAM_TRY(field->kind == FieldKind::kTableVector ? sort_tables(vector, *field)
                                                          : sort_structs(vector, *field));
    }
    return {};
  }

 private:
  void add(const VectorView& vector, const FieldType& field, std::size_t type) {
    if (!keys_[type].empty()) found_.emplace_back(vector, &field);
  }

  Result<void> sort_structs(const VectorView& vector, const FieldType& field) {
    const auto& members = view_.schema().structs()[*field.structure].members;
    const StructMember& key = *std::ranges::find(members, keys_[*field.structure], &StructMember::name);
    const std::span elements = bytes_.subspan(vector.elements(), std::size_t{vector.count} * field.width);
    std::vector<Key> keys;
    for (std::size_t at = key.offset; at < elements.size(); at += field.width) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &elements[at], key.width);
      keys.push_back(scalar_key(key, bits));
    }
    const ByteVector before(elements.begin(), elements.end());
    std::byte* to = elements.data();
    for (const std::uint32_t i : order_of(keys)) {
      std::memcpy(to, before.data() + std::size_t{i} * field.width, field.width);
      to += field.width;
    }
    return {};
  }

  Result<void> sort_tables(const VectorView& vector, const FieldType& field) {
    const auto& fields = view_.schema().tables()[field.type].fields;
    const FieldType& key = *std::ranges::find(fields, keys_[field.type], &FieldType::name);
    std::vector<Key> keys;
    std::vector<std::uint64_t> tables;
    for (std::uint32_t i = 0; i < vector.count; ++i) {
      ETSTREAM_ASSIGN(const TableView table, view_.table_at(vector, i));
      tables.push_back(table.position);
      if (key.kind == FieldKind::kScalar) {
        ETSTREAM_ASSIGN(const std::uint64_t bits, view_.scalar(table, key));
        keys.push_back(scalar_key(key, bits));
      } else {
        ETSTREAM_ASSIGN(const auto string, view_.vector(table, key));
        keys.push_back(string ? Key{.string = {reinterpret_cast<const char*>(&bytes_[string->elements()]),
                                               string->count}}
                              : Key{.is_there = false});
      }
    }
    std::uint64_t at = vector.elements();
    for (const std::uint32_t i : order_of(keys)) {
      put_number(bytes_, at, tables[i] - at);
      at += kOffsetSize;
    }
    return {};
  }

  const FlatbufferView& view_;
  const std::span<std::byte> bytes_;
  const std::vector<std::string>& keys_;
  std::vector<std::pair<VectorView, const FieldType*>> found_;
};

/// Sorts the vectors of `flatbuffer`, which a parser has built, as flatc does. Equal keys come in flatc's
/// order too, unless flatc takes over 64 comparisons for each element of a vector: then they stay in the
/// order of the JSON. `keys` are those of keys_of(), and `name` is what messages call the flatbuffer. Error:
/// kCorrupt for tables nested too deep.
Result<void> sort_by_keys(const Schema& schema, const std::vector<std::string>& keys,
                          std::span<std::byte> flatbuffer, const std::string& name) {
  ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, ByteSource::memory(flatbuffer), name, true));
  KeyedVectors vectors(view, flatbuffer, keys);
  ETSTREAM_TRY(walk_flatbuffer(view, vectors));
  return vectors.sort();
}

/// The links between objects, and the vectors that want more alignment.
struct Objects : FlatbufferVisitor {
  /// A number of 4 bytes at `at` that tells the place of `target`: the object behind it, or for tables, their
  /// vtable.
  struct Link {
    std::uint64_t at = 0;
    std::uint64_t target = 0;
  };
  struct Vector {
    std::uint64_t begin = 0;  // of its elements
    std::uint64_t end = 0;
    std::uint32_t alignment = 1;
  };

  Result<void> begin_table(const TableView& table, const TableType& /*declared*/) {
    vtables.push_back({table.position, table.vtable});
    return {};
  }
  void link(std::uint64_t at, std::uint64_t target) { links.push_back({at, target}); }
  Result<void> inline_vector(const VectorView& vector, const FieldType& field) {
    if (field.alignment > kLargestParserAlignment && vector.count > 0) {
      const std::uint64_t size = std::uint64_t{vector.count} * field.width;
      vectors.push_back({vector.elements(), vector.elements() + size, field.alignment});
    }
    return {};
  }

  std::vector<Link> links;
  std::vector<Link> vtables;
  std::vector<Vector> vectors;
};

/// Returns whether a vector in `schema` has a larger alignment.
bool exceeds_parser_alignment(const Schema& schema) {
  return std::ranges::any_of(schema.tables(), [](const TableType& table) {
    return std::ranges::any_of(
        table.fields, [](std::uint32_t alignment) { return alignment > kLargestParserAlignment; },
        &FieldType::alignment);
  });
}

/// Rebuilds `flatbuffer`, in which no vector is aligned to more than the parser takes, with the alignments
/// that `schema` asks for. Objects keep their order and move by multiples of kLargestParserAlignment, so that
/// their own alignment stays. `name` is what messages call it. Errors: kCorrupt; kTooLarge for 2 GiB.
Result<std::vector<std::byte>> raise_alignments(std::vector<std::byte> flatbuffer, const Schema& schema,
                                                const std::string& name) {
  ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, ByteSource::memory(flatbuffer), name));
  Objects objects;
  ETSTREAM_TRY(walk_flatbuffer(view, objects));
  if (objects.vectors.empty()) return flatbuffer;
  // Pads as a builder does, which begins with the last of the file: behind each of the vectors, and at last
  // behind the header.
  std::ranges::sort(objects.vectors, std::greater(), &Objects::Vector::begin);
  std::map<std::uint64_t, std::uint64_t> zeros;  // how many go before a byte; then before it in all
  std::uint64_t size = flatbuffer.size();
  std::uint64_t largest = 1;
  const auto pad = [&](std::uint64_t at, std::uint64_t from_end, std::uint64_t alignment) {
    const std::uint64_t needed = padding_to(from_end, alignment);
    zeros[at] += needed;
    size += needed;
  };
  for (const Objects::Vector& vector : objects.vectors) {
    pad(vector.end, size - vector.begin, vector.alignment);
    largest = std::max<std::uint64_t>(largest, vector.alignment);
  }
  pad(kOffsetSize + schema.identifier().size(), size, largest);
  if (size > kLargestFlatbuffer) {
    return error_in(ErrorCode::kTooLarge, name, "its flatbuffer would have {}, at most {} are possible",
                    readable_size(size), readable_size(kLargestFlatbuffer));
  }
  ByteVector out;
  out.reserve(size);
  auto copied = flatbuffer.begin();
  for (std::uint64_t so_far = 0; auto& [at, needed] : zeros) {
    const auto end = flatbuffer.begin() + static_cast<std::ptrdiff_t>(at);
    out.insert(out.end(), std::exchange(copied, end), end);
    out.resize(out.size() + needed);
    needed = so_far += needed;
  }
  out.insert(out.end(), copied, flatbuffer.end());
  const auto moved = [&](std::uint64_t position) {
    const auto behind = zeros.upper_bound(position);
    return position + (behind == zeros.begin() ? 0 : std::prev(behind)->second);
  };
  for (const auto& [at, target] : objects.links) put_number(out, moved(at), moved(target) - moved(at));
  for (const auto& [table, vtable] : objects.vtables) {
    put_number(out, moved(table), moved(table) - moved(vtable));
  }
  return out;
}

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
  leave_unsorted(*parser);
  return parser;
}

/// Warns of what is behind the flatbuffer: the JSON does not have it. Zeros that align the end, as the schema
/// asks for, are part of the flatbuffer.
Result<void> warn_of_rest(const FlatbufferView& view, const Warn& warn) {
  std::uint64_t alignment = sizeof(std::uint64_t);
  for (const TableType& table : view.schema().tables()) {
    for (const FieldType& field : table.fields) {
      alignment = std::max<std::uint64_t>({alignment, field.alignment, field.natural_alignment});
    }
  }
  const std::uint64_t size = view.file().size();
  ETSTREAM_ASSIGN(const std::uint64_t end, end_of_objects(view));
  ETSTREAM_ASSIGN(const auto nonzero, view.find_nonzero(end, std::min(size, end + alignment)));
  if (!nonzero && size - end < alignment) return {};
  warn(with_advice(error_in(ErrorCode::kUnsupported, view.name(),
                            "the JSON has the flatbuffer alone, and not the {} behind it, such as segments",
                            counted(size - end, "byte")),
                   {AdviceTerm::kSegmentsFrom, " takes those of a program from it again"}));
  return {};
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
  std::vector<std::string> keys;  // those of keys_of(); none where there are no keys
  bool raises_alignments = false;
  std::string nested_field;
  mutable std::mutex mutex;
  mutable std::vector<ParserPointer> idle;
};

namespace {

/// Returns all bytes of a file. Error: kTooLarge over `limit` bytes.
Result<ByteVector> content_of(const ByteSource& source, std::uint64_t limit) {
  if (source.size() > limit) {
    return error_in(ErrorCode::kTooLarge, source.name(), "{}, at most {} can be taken",
                    readable_size(source.size()), readable_size(limit));
  }
  return without_exceptions([&]() -> Result<ByteVector> {
    ByteVector out(static_cast<std::size_t>(source.size()));
    ETSTREAM_TRY(source.read_at(0, out));
    return out;
  });
}

}  // namespace

Result<FlatbufferText> FlatbufferText::open(const std::string& schema,
                                            const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<FlatbufferText> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(schema, include_folders));
    auto state = std::make_shared<State>(std::move(loaded), schema);
    ETSTREAM_ASSIGN(auto parser, state->take_parser());
    state->nested_field = nested_field_of(*parser);
    state->give_back(std::move(parser));
    state->raises_alignments = exceeds_parser_alignment(state->schema);
    state->keys = keys_of(*reflection::GetSchema(state->binary.data()));
    const bool has_keys = !state->keys.empty();
    if ((has_keys || state->raises_alignments) && !state->nested_field.empty()) {
      return error_in(ErrorCode::kUnsupported, schema, "{} in a schema with a flatbuffer in another, {}",
                      has_keys ? "a key" : text("a force_align over {}", kLargestParserAlignment),
                      state->nested_field);
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
    state_->give_back(std::move(parser));
    if (!state_->keys.empty()) ETSTREAM_TRY(sort_by_keys(state_->schema, state_->keys, out, name));
    if (!state_->raises_alignments) return out;
    return raise_alignments(std::move(out), state_->schema, name);
  });
}

Result<ByteVector> FlatbufferText::compile(const ByteSource& json) const {
  ETSTREAM_ASSIGN(const ByteVector content, content_of(json, kLargestJson));
  return compile({reinterpret_cast<const char*>(content.data()), content.size()}, json.name());
}

Result<std::string> FlatbufferText::decompile(const ByteSource& flatbuffer,
                                              const DecompileOptions& options) const {
  ETSTREAM_ASSIGN(const ByteVector content,
                  content_of(flatbuffer, std::numeric_limits<std::int32_t>::max()));  // offsets have 32 bits
  return decompile(content, options, flatbuffer.name());
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

struct ExactJson::State : LoadedSchema {};

Result<ExactJson> ExactJson::open(const std::string& schema,
                                  const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ExactJson> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(schema, include_folders));
    auto state = std::make_shared<const State>(State{std::move(loaded)});
    return ExactJson(std::move(state));
  });
}

Result<void> ExactJson::decompile(const ByteSource& file, const ExactJsonOptions& options, Sink& sink) const {
  return without_exceptions([&]() -> Result<void> {
    ByteSource flatbuffer = file;
    if (options.size_prefixed) {
      ETSTREAM_ASSIGN(flatbuffer, without_size_prefix(file, file.name()));
    }
    ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(state_->schema, std::move(flatbuffer), file.name(),
                                                          !options.identifier));
    ETSTREAM_TRY(verify_flatbuffer(view, {.typed_unions = true}));
    ETSTREAM_ASSIGN(const auto unknown, find_unknown_field(view));
    if (unknown) {
      return make_error(ErrorCode::kUnsupported, "{}; a schema that has all of its fields loses none",
                        unknown->message);
    }
    if (options.warn) ETSTREAM_TRY(warn_of_rest(view, options.warn));
    JsonOptions json{.compact = options.compact, .defaults = options.defaults, .references = {}};
    if (options.leave_out_over) {
      json.references = JsonReferences{options.file_name, 0, *options.leave_out_over};
    }
    return write_json(view, json, sink);
  });
}

Result<FilePlan> ExactJson::compile(const ByteSource& json, const std::string& folder,
                                    FlatbufferOrder order) const {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const auto values, read_json_values(state_->schema, json, folder));
    const bool is_flatc = order == FlatbufferOrder::kFlatc;
    return pack(state_->schema, *values, {.order = is_flatc ? ObjectOrder::kFlatc : ObjectOrder::kObjectApi});
  });
}

const std::string& ExactJson::file_extension() const noexcept { return state_->file_extension; }

}  // namespace etstream
