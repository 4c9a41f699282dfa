// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_value_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/json/json_writer.h"

namespace etstream {
namespace {

using TapeKind = JsonTape::Kind;

constexpr JsonTape::Place kNoPlace = ~JsonTape::Place{0};
/// The deepest nesting of JSON: tables in vectors, and structs with arrays, both as deep as they may be.
constexpr int kDeepest = 4 * kDeepestTable;

class JsonValueReader final : public ValueReader {
 public:
  JsonValueReader(const Schema& schema, JsonTape tape, std::string folder)
      : schema_(schema), tape_(std::move(tape)), folder_(std::move(folder)) {
    for (const TableType& type : schema.tables()) table_keys_.push_back(keys_of(type.fields));
    for (const StructType& type : schema.structs()) struct_keys_.push_back(keys_of(type.members));
  }

  ValueNode root() override { return {nullptr, JsonTape::kRoot}; }
  bool has_deprecated() const override { return true; }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override {
    ETSTREAM_ASSIGN(const OpenTable* const open, open_table(node.index, table));
    const TableType& declared = schema_.tables()[table];
    const FieldType& type = declared.fields[field];
    const Place place = open->fields[field];
    if (type.kind == FieldKind::kUnion || type.kind == FieldKind::kUnionVector) {
      return union_value(type, declared.types_of(type), open->fields[field - 1], place);
    }
    if (is_absent(place)) return FieldValue(AbsentValue{});
    switch (type.kind) {
      case FieldKind::kScalar: {
        ETSTREAM_ASSIGN(const std::uint64_t bits, scalar(place, type));
        return FieldValue(ScalarValue{bits});
      }
      case FieldKind::kStruct:
        return struct_value(place, type);
      case FieldKind::kString:
        return string_value(place);
      case FieldKind::kTable:
        return table_value(place);
      case FieldKind::kInlineVector:
        return inline_vector(place, type);
      default:
        return vector_value(place, type, kNoPlace);
    }
  }

  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override {
    Vector& given = vectors_[vector.index];
    if (given.member) {
      return given.member->kind == FieldKind::kString ? string_value(given.elements.first)
                                                      : struct_value(given.elements.first, *given.member);
    }
    const Place place = advance(given.elements, i);
    switch (given.field->kind) {
      case FieldKind::kTableVector:
        return table_value(place);
      case FieldKind::kStringVector:
        return string_value(place);
      default: {
        const UnionType& type = schema_.unions()[given.field->type];
        ETSTREAM_ASSIGN(const std::uint8_t number, union_type(type, advance(given.types, i)));
        return member_value(type, number, place);
      }
    }
  }

 private:
  using Place = JsonTape::Place;
  /// The keys that an object may have, with their places in a list of them.
  using Members = std::map<std::string_view, std::size_t>;
  template <class Fields>
  static Members keys_of(const Fields& fields) {
    Members out;
    for (const auto& field : fields) out.emplace(field.name, out.size());
    return out;
  }

  /// A table whose keys were looked up; kNoPlace for one that is missing.
  struct OpenTable {
    Place begin = 0;
    Place end = 0;
    std::vector<Place> fields;
  };
  /// A position in an array that is gone through.
  struct Cursor {
    Place first = 0;
    Place next = 0;
    std::uint64_t index = 0;
  };
  /// A vector of tables, strings or unions; or a string or struct that a union holds, as its one element.
  struct Vector {
    const FieldType* field = nullptr;
    Cursor elements;
    Cursor types = {};                    // of the unions
    const UnionMember* member = nullptr;  // what a union holds
  };

  Result<const OpenTable*> open_table(Place place, std::size_t table) {
    while (!open_.empty() && (place < open_.back().begin || place >= open_.back().end)) open_.pop_back();
    if (!open_.empty() && open_.back().begin == place) return &open_.back();
    const TableType& declared = schema_.tables()[table];
    ETSTREAM_ASSIGN(auto fields, open_object(place, table_keys_[table], text("table {}", declared.name)));
    open_.push_back({place, tape_.at(place).end, std::move(fields)});
    return &open_.back();
  }

  /// Returns the places of an object's values. Refuses keys other than `members`, which are those of `owner`.
  Result<std::vector<Place>> open_object(Place place, const Members& members, std::string_view owner) const {
    const JsonTape::Value object = tape_.at(place);
    if (object.kind != TapeKind::kObject) return wrong(place, text("an object, for {}", owner));
    std::vector<Place> out(members.size(), kNoPlace);
    Place next = object.first;
    while (next != object.end) {
      const JsonTape::Key key = tape_.key_at(next);
      const auto member = members.find(key.name);
      if (member == members.end()) return invalid(next, text("unknown key {} in {}", quote(key.name), owner));
      if (out[member->second] != kNoPlace) return invalid(next, text("{} comes twice", quote(key.name)));
      out[member->second] = key.value;
      next = tape_.at(key.value).end;
    }
    return out;
  }

  bool is_absent(Place place) const { return place == kNoPlace || tape_.at(place).kind == TapeKind::kNull; }

  Place advance(Cursor& cursor, std::uint64_t i) const {
    if (i < cursor.index) cursor = {cursor.first, cursor.first};
    for (; cursor.index < i; ++cursor.index) cursor.next = tape_.at(cursor.next).end;
    return cursor.next;
  }

  Result<FieldValue> table_value(Place place) const {
    if (tape_.at(place).kind != TapeKind::kObject) return wrong(place, "an object");
    return FieldValue(TableValue{{nullptr, place}});
  }

  Result<FieldValue> string_value(Place place) {
    const JsonTape::Value value = tape_.at(place);
    if (value.kind == TapeKind::kString) return FieldValue(value.string);
    if (value.kind != TapeKind::kObject) return wrong(place, "a string");
    ETSTREAM_ASSIGN(const auto members, open_object(place, {{"base64", 0}}, "a string"));
    bytes_.clear();
    if (members[0] == kNoPlace || tape_.at(members[0]).kind != TapeKind::kString ||
        !decode_base64(tape_.at(members[0]).string, bytes_)) {
      return wrong(place, R"(a string, or {"base64": "..."})");
    }
    return FieldValue(std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()));
  }

  Result<FieldValue> vector_value(Place place, const FieldType& field, Place types) {
    const JsonTape::Value array = tape_.at(place);
    if (array.kind != TapeKind::kArray) return wrong(place, "an array");
    const auto count = [&](const JsonTape::Value& of) {
      std::uint64_t n = 0;
      for (Place next = of.first; next != of.end; ++n) next = tape_.at(next).end;
      return n;
    };
    const std::uint64_t n = count(array);
    Vector given{.field = &field, .elements = {array.first, array.first}};
    if (types != kNoPlace) {
      const JsonTape::Value type_array = tape_.at(types);
      if (type_array.kind != TapeKind::kArray) return wrong(types, "an array of the unions' types");
      if (const std::uint64_t found = count(type_array); found != n) {
        return invalid(types, text("expected {}, one for each union, found {}", counted(n, "type"), found));
      }
      given.types = {type_array.first, type_array.first};
    }
    vectors_.push_back(given);
    return FieldValue(VectorValue{{nullptr, vectors_.size() - 1}, n});
  }

  Result<FieldValue> union_value(const FieldType& field, const FieldType& type_field, Place type,
                                 Place place) {
    const UnionType& declared = schema_.unions()[field.type];
    if (is_absent(type)) {
      if (is_absent(place)) return FieldValue(AbsentValue{});
      return invalid(place, text("there is no {}, which says what it is", quote(type_field.name)));
    }
    const bool is_vector = field.kind == FieldKind::kUnionVector;
    std::uint8_t number = 0;
    if (!is_vector) {
      ETSTREAM_ASSIGN(number, union_type(declared, type));
      if (number == 0 && is_absent(place)) return FieldValue(AbsentValue{});
    }
    if (is_absent(place)) return invalid(type, text("there is no {} that it tells of", quote(field.name)));
    return is_vector ? vector_value(place, field, type) : member_value(declared, number, place);
  }

  Result<FieldValue> member_value(const UnionType& type, std::uint8_t number, Place place) {
    const UnionMember* member = type.member(number);
    if (!member) {
      if (tape_.at(place).kind == TapeKind::kNull) return FieldValue(UnionValue{});
      return wrong(place, "null, as its type is NONE");
    }
    if (member->kind == FieldKind::kTable) {
      ETSTREAM_ASSIGN(const FieldValue table, table_value(place));
      return FieldValue(UnionValue{number, std::get<TableValue>(table).node});
    }
    vectors_.push_back({.elements = {place, place}, .member = member});
    return FieldValue(UnionValue{number, {nullptr, vectors_.size() - 1}});
  }

  Result<std::uint8_t> union_type(const UnionType& type, Place place) const {
    const JsonTape::Value value = tape_.at(place);
    if (value.kind == TapeKind::kString) {
      if (const auto number = type.number_of(value.string)) return *number;
    } else if (value.kind == TapeKind::kInteger && value.integer >= 0 && value.integer <= 255) {
      const auto number = static_cast<std::uint8_t>(value.integer);
      if (number == 0 || type.member(number)) return number;
    }
    return wrong(place, text("a member of union {}", type.name));
  }

  Result<FieldValue> inline_vector(Place place, const FieldType& field) {
    const JsonTape::Value value = tape_.at(place);
    if (value.kind == TapeKind::kObject) return file_range(place, field);
    bytes_.clear();
    if (value.kind == TapeKind::kString && is_byte(field)) {
      if (!decode_base64(value.string, bytes_)) return wrong(place, "base64");
      return FieldValue(BytesValue(bytes_));
    }
    if (value.kind != TapeKind::kArray)
      return wrong(place, is_byte(field) ? "an array or base64" : "an array");
    if (value.first != value.end && is_byte(field) && tape_.at(value.first).kind == TapeKind::kString) {
      for (Place next = value.first; next != value.end; next = tape_.at(next).end) {
        const JsonTape::Value piece = tape_.at(next);
        if (piece.kind == TapeKind::kString && decode_base64(piece.string, bytes_)) continue;
        return wrong(next, "base64, as what is before it");
      }
      return FieldValue(BytesValue(bytes_));
    }
    for (Place next = value.first; next != value.end; next = tape_.at(next).end) {
      bytes_.resize(bytes_.size() + field.width);
      ETSTREAM_TRY(inline_value(next, field, std::span(bytes_).last(field.width)));
    }
    return FieldValue(BytesValue(bytes_));
  }

  Result<FieldValue> file_range(Place place, const FieldType& field) {
    const Members keys = {{"file", 0}, {"offset", 1}, {"size", 2}};
    ETSTREAM_ASSIGN(const auto members, open_object(place, keys, "a range of a file"));
    if (members[0] == kNoPlace || tape_.at(members[0]).kind != TapeKind::kString) {
      return wrong(members[0] == kNoPlace ? place : members[0], R"({"file": PATH})");
    }
    std::string path(tape_.at(members[0]).string);
    if (!path.starts_with('/')) path = folder_ + path;
    auto opened = files_.find(path);
    if (opened == files_.end()) {
      auto file = ByteSource::file(path);
      if (!file) return tape_.error_at(members[0], file.error());
      opened = files_.emplace(path, std::move(file).value()).first;
    }
    const ByteSource& file = opened->second;
    InlineType number;
    number.width = sizeof(std::uint64_t);
    std::uint64_t offset = 0;
    if (members[1] != kNoPlace) {
      ETSTREAM_ASSIGN(offset, scalar(members[1], number));
    }
    std::uint64_t size = file.size() - std::min(offset, file.size());
    if (members[2] != kNoPlace) {
      ETSTREAM_ASSIGN(size, scalar(members[2], number));
    }
    if (!range_fits(offset, size, file.size())) {
      return invalid(place, text("expected a range of {}, which is of {}, found {} from {} on",
                                 printable(path), counted(file.size(), "byte"), size, offset));
    }
    if (size % field.width != 0) {
      return invalid(place, text("expected a multiple of {} bytes, found {}", field.width, size));
    }
    ETSTREAM_ASSIGN(ByteSource range, file.slice(offset, size));
    return FieldValue(std::move(range));
  }

  Result<std::uint64_t> scalar(Place place, const InlineType& type) const {
    const auto bits = scalar_bits(schema_, type, tape_.at(place));
    return bits ? Result<std::uint64_t>(*bits) : wrong(place, expected_scalar(schema_, type));
  }

  Result<FieldValue> struct_value(Place place, const InlineType& type) {
    bytes_.assign(type.width, std::byte{0});
    ETSTREAM_TRY(inline_value(place, type, bytes_));
    return FieldValue(BytesValue(bytes_));
  }

  /// Reads the bytes of a scalar or struct.
  Result<void> inline_value(Place place, const InlineType& type, std::span<std::byte> out) const {
    if (type.structure) return struct_members(place, *type.structure, out);
    ETSTREAM_ASSIGN(const std::uint64_t bits, scalar(place, type));
    std::memcpy(out.data(), &bits, out.size());
    return {};
  }

  Result<void> struct_members(Place place, std::size_t structure, std::span<std::byte> out) const {
    const JsonTape::Value value = tape_.at(place);
    if (value.kind == TapeKind::kString) {
      std::vector<std::byte> bytes;
      if (!decode_base64(value.string, bytes) || bytes.size() != out.size()) {
        return wrong(place, text("an object, or base64 of {} bytes", out.size()));
      }
      std::copy(bytes.begin(), bytes.end(), out.begin());
      return {};
    }
    const StructType& type = schema_.structs()[structure];
    ETSTREAM_ASSIGN(const auto places,
                    open_object(place, struct_keys_[structure], text("struct {}", type.name)));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const StructMember& member = type.members[i];
      if (places[i] == kNoPlace) {
        return invalid(place, text("there is no {}, which struct {} needs", quote(member.name), type.name));
      }
      const std::span<std::byte> rest = out.subspan(member.offset);
      if (!member.count) {
        ETSTREAM_TRY(inline_value(places[i], member, rest.first(member.width)));
        continue;
      }
      const JsonTape::Value array = tape_.at(places[i]);
      if (array.kind != TapeKind::kArray) return wrong(places[i], "an array");
      Place next = array.first;
      std::uint32_t n = 0;
      for (; next != array.end && n < *member.count; ++n) {
        ETSTREAM_TRY(inline_value(next, member, rest.subspan(std::size_t{n} * member.width, member.width)));
        next = tape_.at(next).end;
      }
      if (n != *member.count || next != array.end) {
        return wrong(places[i], text("an array of {} elements", *member.count));
      }
    }
    return {};
  }

  Error wrong(Place place, std::string_view expected) const {
    return invalid(place, text("expected {}, found {}", expected, shown(tape_.at(place))));
  }

  Error invalid(Place place, std::string_view message) const {
    return tape_.error_at(place, {ErrorCode::kInvalidArgument, std::string(message)});
  }

  const Schema& schema_;
  std::vector<Members> table_keys_;   // as the schema's
  std::vector<Members> struct_keys_;  // as the schema's
  const JsonTape tape_;
  const std::string folder_;
  std::vector<OpenTable> open_;              // that lead to the one that was asked for last
  std::deque<Vector> vectors_;               // that were given out
  std::map<std::string, ByteSource> files_;  // by path
  std::vector<std::byte> bytes_;             // of the value that was given last
};

}  // namespace

Result<std::unique_ptr<ValueReader>> read_json_values(const Schema& schema, const ByteSource& json,
                                                      const std::string& folder) {
  return without_exceptions([&]() -> Result<std::unique_ptr<ValueReader>> {
    ETSTREAM_ASSIGN(JsonTape tape, JsonTape::parse(json, kDeepest, JsonSyntax::kFlatc));
    const bool needs_slash = !folder.empty() && !folder.ends_with('/');
    return std::unique_ptr<ValueReader>(
        std::make_unique<JsonValueReader>(schema, std::move(tape), needs_slash ? folder + "/" : folder));
  });
}

}  // namespace etstream
