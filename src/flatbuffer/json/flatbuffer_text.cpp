// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/flatbuffer_text.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection_generated.h>
#include <flatbuffers/util.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
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

using flatbuffers::BaseType;
using flatbuffers::FieldDef;
using flatbuffers::StructDef;

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

template <class Scalar>
Key key_of(const std::uint8_t* at, const FieldDef& field) {
  Scalar value{};
  if (at != nullptr) {
    value = flatbuffers::ReadScalar<Scalar>(at);
  } else {
    flatbuffers::StringToNumber(field.value.constant.c_str(), &value);
  }
  if constexpr (std::is_floating_point_v<Scalar>) return {.real = value};
  constexpr std::uint64_t kSign = std::is_signed_v<Scalar> ? std::uint64_t{1} << 63 : 0;
  return {.number = static_cast<std::uint64_t>(value) ^ kSign};
}

/// Reads the key at `at`, or the default if `at` is null because the file lacks the key.
Key read_key(const std::uint8_t* at, const FieldDef& field) {
  switch (field.value.type.base_type) {
    case flatbuffers::BASE_TYPE_STRING: {
      if (at == nullptr) return {.is_there = false};
      const auto* const string = reinterpret_cast<const flatbuffers::String*>(
          at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at));
      return {.string = {string->c_str(), string->size()}};
    }
    case flatbuffers::BASE_TYPE_CHAR:
      return key_of<std::int8_t>(at, field);
    case flatbuffers::BASE_TYPE_SHORT:
      return key_of<std::int16_t>(at, field);
    case flatbuffers::BASE_TYPE_USHORT:
      return key_of<std::uint16_t>(at, field);
    case flatbuffers::BASE_TYPE_INT:
      return key_of<std::int32_t>(at, field);
    case flatbuffers::BASE_TYPE_UINT:
      return key_of<std::uint32_t>(at, field);
    case flatbuffers::BASE_TYPE_LONG:
      return key_of<std::int64_t>(at, field);
    case flatbuffers::BASE_TYPE_ULONG:
      return key_of<std::uint64_t>(at, field);
    case flatbuffers::BASE_TYPE_FLOAT:
      return key_of<float>(at, field);
    case flatbuffers::BASE_TYPE_DOUBLE:
      return key_of<double>(at, field);
    default:
      return key_of<std::uint8_t>(at, field);
  }
}

const FieldDef* key_field(const StructDef& type) {
  if (type.has_key) return nullptr;  // of a kind that later parsers know, and sort by
  const auto& fields = type.fields.vec;
  const auto found = std::find_if(fields.begin(), fields.end(), [](const FieldDef* one) { return one->key; });
  return found == fields.end() ? nullptr : *found;
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

/// Sorts the vectors of a flatbuffer that the parser has built, and which is therefore sound.
class Sorter {
 public:
  explicit Sorter(const flatbuffers::Parser& parser) {
    for (const StructDef* type : parser.structs_.vec) keys_.emplace(type, key_field(*type));
  }

  [[nodiscard]] bool has_keys() const {
    return std::any_of(keys_.begin(), keys_.end(), [](const auto& type) { return type.second != nullptr; });
  }

  void sort_table(std::uint8_t* table, const StructDef& type) const {
    const std::uint8_t* const vtable = table - flatbuffers::ReadScalar<flatbuffers::soffset_t>(table);
    const auto vtable_size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
    for (std::size_t i = 0; i < type.fields.vec.size(); ++i) {
      const FieldDef& field = *type.fields.vec[i];
      if (field.value.offset >= vtable_size) return;
      const auto at = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + field.value.offset);
      if (at == 0) continue;
      const flatbuffers::Type& held = field.value.type;
      const auto type_before = [&] { return table_field(table, vtable, *type.fields.vec[i - 1]); };
      if (held.base_type == flatbuffers::BASE_TYPE_VECTOR) {
        std::uint8_t* const vector = target(table + at);
        const bool is_union = held.element == flatbuffers::BASE_TYPE_UNION;
        sort_vector(vector, field, is_union ? target(type_before()) + kLength : nullptr);
      } else {
        sort_object(table + at, held, held.base_type == flatbuffers::BASE_TYPE_UNION ? *type_before() : 0);
      }
    }
  }

 private:
  static constexpr std::size_t kLength = sizeof(flatbuffers::uoffset_t);

  static std::uint8_t* target(std::uint8_t* offset) {
    return offset + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(offset);
  }
  static std::uint8_t* table_field(std::uint8_t* table, const std::uint8_t* vtable, const FieldDef& field) {
    return table + flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + field.value.offset);
  }

  /// Sorts what is at `offset`: a table, or the member of kind `member` of a union. Other members have
  /// nothing to sort.
  void sort_object(std::uint8_t* offset, const flatbuffers::Type& type, std::uint8_t member) const {
    const flatbuffers::Type* held = &type;
    if (type.base_type == flatbuffers::BASE_TYPE_UNION) {
      const flatbuffers::EnumVal* const value = type.enum_def->ReverseLookup(member);
      if (value == nullptr) return;
      held = &value->union_type;
    }
    if (held->base_type == flatbuffers::BASE_TYPE_STRUCT && !held->struct_def->fixed) {
      sort_table(target(offset), *held->struct_def);
    }
  }

  /// `members` are the types of a vector of unions.
  void sort_vector(std::uint8_t* vector, const FieldDef& field, const std::uint8_t* members) const {
    const auto count = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(vector);
    std::uint8_t* const elements = vector + kLength;
    const flatbuffers::Type held = field.value.type.VectorType();
    const bool is_union = held.base_type == flatbuffers::BASE_TYPE_UNION;
    if (held.base_type != flatbuffers::BASE_TYPE_STRUCT && !is_union) return;
    if (is_union || !held.struct_def->fixed) {
      for (std::size_t i = 0; i < count; ++i) {
        sort_object(elements + i * kLength, held, is_union ? members[i] : std::uint8_t{0});
      }
    }
    const FieldDef* const key = is_union ? nullptr : keys_.at(held.struct_def);
    if (key == nullptr) return;
    if (held.struct_def->fixed) {
      sort_structs(elements, count, held.struct_def->bytesize, *key);
    } else {
      sort_tables(elements, count, *key);
    }
  }

  static void sort_structs(std::uint8_t* elements, std::size_t count, std::size_t size, const FieldDef& key) {
    std::vector<Key> keys;
    for (std::size_t i = 0; i < count; ++i) {
      keys.push_back(read_key(elements + i * size + key.value.offset, key));
    }
    const std::vector<std::uint8_t> before(elements, elements + count * size);
    for (const std::uint32_t i : order_of(keys)) {
      std::memcpy(elements, before.data() + i * size, size);
      elements += size;
    }
  }

  static void sort_tables(std::uint8_t* elements, std::size_t count, const FieldDef& key) {
    std::vector<Key> keys;
    std::vector<std::uint8_t*> tables;
    for (std::size_t i = 0; i < count; ++i) {
      tables.push_back(target(elements + i * kLength));
      const auto* const table = reinterpret_cast<const flatbuffers::Table*>(tables.back());
      keys.push_back(read_key(table->GetAddressOf(key.value.offset), key));
    }
    for (const std::uint32_t i : order_of(keys)) {
      flatbuffers::WriteScalar(elements, static_cast<flatbuffers::uoffset_t>(tables[i] - elements));
      elements += kLength;
    }
  }

  std::map<const StructDef*, const FieldDef*> keys_;
};

/// Makes `parser` leave vectors in the order of the JSON, for sort_by_keys(). Returns whether it sorted any.
bool leave_unsorted(flatbuffers::Parser& parser) {
  bool sorted = false;
  for (StructDef* type : parser.structs_.vec) {
    const bool has_key = std::exchange(type->has_key, false);
    const FieldDef* const key = key_field(*type);
    const BaseType kind = key ? key->value.type.base_type : flatbuffers::BASE_TYPE_NONE;
    const bool is_known = flatbuffers::IsScalar(kind) || kind == flatbuffers::BASE_TYPE_STRING;
    type->has_key = has_key && !is_known;
    sorted |= has_key && is_known;
  }
  return sorted;
}

/// Sorts the vectors of `flatbuffer`, which `parser` has built, as flatc does. Equal keys come in flatc's
/// order too, unless flatc takes over 64 comparisons for each element of a vector: then they stay in the
/// order of the JSON.
void sort_by_keys(const flatbuffers::Parser& parser, std::span<std::byte> flatbuffer) {
  const Sorter sorter(parser);
  if (!sorter.has_keys()) return;
  auto* const begin = reinterpret_cast<std::uint8_t*>(flatbuffer.data());
  const auto root = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(begin);
  sorter.sort_table(begin + root, *parser.root_struct_def_);
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

/// The zeros that are put between objects.
class Padding {
 public:
  /// Pads as a builder does. It begins at the end of `size` bytes, pads behind each of the vectors, and at
  /// last behind the header.
  Padding(std::uint64_t size, std::uint64_t header, const std::vector<Objects::Vector>& vectors) {
    std::uint64_t largest = 1;
    for (const Objects::Vector& vector : vectors) {
      put(vector.end, padding_to(size - vector.begin + total_, vector.alignment));
      largest = std::max<std::uint64_t>(largest, vector.alignment);
    }
    put(header, padding_to(size + total_, largest));
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Returns the new place of the byte at `position`.
  [[nodiscard]] std::uint64_t moved(std::uint64_t position) const {
    // Only zeros that are put at `position` or before it move it.
    const auto behind = std::partition_point(pieces_.begin(), pieces_.end(),
                                             [&](const Piece& piece) { return piece.at > position; });
    return position + total_ - (behind == pieces_.begin() ? 0 : std::prev(behind)->so_far);
  }
  /// Returns `bytes` with the zeros between them.
  [[nodiscard]] std::vector<std::byte> apply(const std::vector<std::byte>& bytes) const {
    std::vector<std::byte> out(bytes.size() + total_);
    std::uint64_t end = bytes.size();
    for (const Piece& piece : pieces_) {
      copy(bytes, piece.at, end, out);
      end = piece.at;
    }
    copy(bytes, 0, end, out);
    return out;
  }

 private:
  struct Piece {
    std::uint64_t at = 0;
    std::uint64_t so_far = 0;  // zeros put here and behind
  };

  void put(std::uint64_t at, std::uint64_t size) {
    total_ += size;
    pieces_.push_back({at, total_});
  }
  void copy(const std::vector<std::byte>& bytes, std::uint64_t begin, std::uint64_t end,
            std::vector<std::byte>& out) const {
    std::memcpy(out.data() + moved(begin), bytes.data() + begin, end - begin);
  }

  std::vector<Piece> pieces_;  // from the end of the file to its beginning
  std::uint64_t total_ = 0;
};

void put_number(std::vector<std::byte>& bytes, std::uint64_t at, std::uint64_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  std::memcpy(bytes.data() + at, &number, sizeof(number));
}

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
  // Sorts the vectors in the order in which they were built: the last of the file first.
  std::ranges::sort(objects.vectors, std::greater(), &Objects::Vector::begin);
  const Padding padding(flatbuffer.size(), kOffsetSize + schema.identifier().size(), objects.vectors);
  if (flatbuffer.size() + padding.total() > kLargestFlatbuffer) {
    return error_in(ErrorCode::kTooLarge, name, "its flatbuffer would have {}, at most {} are possible",
                    readable_size(flatbuffer.size() + padding.total()), readable_size(kLargestFlatbuffer));
  }
  std::vector<std::byte> out = padding.apply(flatbuffer);
  for (const auto& [at, target] : objects.links) {
    put_number(out, padding.moved(at), padding.moved(target) - padding.moved(at));
  }
  for (const auto& [table, vtable] : objects.vtables) {
    put_number(out, padding.moved(table), padding.moved(table) - padding.moved(vtable));
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
  const bool has_keys = leave_unsorted(*parser);
  if (const std::string nested = nested_field_of(*parser); has_keys && !nested.empty()) {
    return error_in(ErrorCode::kUnsupported, path, "a key in a schema with a flatbuffer in another, {}",
                    nested);
  }
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
