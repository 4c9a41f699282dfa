// SPDX-License-Identifier: BSD-3-Clause
//
// JsonValueReader: gives the packer what a JSON text says, by the schema that is packed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/schema_packer.h"

namespace etstream {

/// Reads the JSON that write_json(), flatc and ExecuTorch's _DataclassEncoder write. Keys come in any order,
/// and need no quotes; null is absent.
///
/// - An enum is a name or a number; several names with a space between them where it has bit_flags.
/// - A bool is true or false, or the number that is stored.
/// - A float is a number, or nan, inf, -nan or -inf, with quotes or without, or "nan:BITS". NaN and Infinity,
///   as Python writes them, are read too.
/// - A union X comes with X_type, a name or a number.
/// - A struct is an object with all its members, or its bytes in base64.
/// - A string that is not UTF-8 is {"base64": "..."}.
/// - A vector of bytes is an array of numbers, base64, or an array of pieces in base64.
/// - Any vector of scalars or structs is {"file": PATH, "offset": N, "size": N}, in bytes, as they lie in the
///   flatbuffer; without size, all the rest of the file. It is read when the flatbuffer is written.
///
/// Errors, which come when what is wrong is asked for: kInvalidArgument for an unknown or repeated key, a
/// value of another kind than its field's or out of its range, a union without its type; those of opening
/// files. They say the file, the line, and the path of what is wrong. Memory: about that of the text, or
/// less.
class JsonValueReader final : public ValueReader {
 public:
  /// Paths are relative to `folder`; empty is the current one. `schema` outlives the reader. Errors: those of
  /// parse_json.
  [[nodiscard]] static Result<std::unique_ptr<JsonValueReader>> parse(const Schema& schema,
                                                                      const ByteSource& json,
                                                                      const std::string& folder);

  ValueNode root() override { return {nullptr, JsonTape::kRoot}; }
  bool has_deprecated() const override { return true; }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override;

 private:
  using Place = JsonTape::Place;
  /// The keys that an object may have.
  struct Members {
    std::map<std::uint32_t, std::size_t> places;  // in a list of them, by their numbers on the tape
    std::size_t count = 0;
  };
  struct Keys {
    explicit Keys(const Schema& schema);

    JsonKeys numbers;              // for the tape
    std::vector<Members> tables;   // as the schema's
    std::vector<Members> structs;  // as the schema's
    Members file_range;
    Members string;
  };

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

  JsonValueReader(const Schema& schema, Keys keys, JsonTape tape, std::string folder)
      : schema_(schema), keys_(std::move(keys)), tape_(std::move(tape)), folder_(std::move(folder)) {}

  Result<const OpenTable*> open_table(Place place, std::size_t table);
  /// Returns the places of an object's values. Refuses keys other than `members`, which are those of `owner`.
  Result<std::vector<Place>> open_object(Place place, const Members& members, std::string_view owner) const;
  bool is_absent(Place place) const;
  Place advance(Cursor& cursor, std::uint64_t i) const;

  Result<FieldValue> string_value(Place place);
  Result<FieldValue> table_value(Place place) const;
  Result<FieldValue> vector_value(Place place, const FieldType& field, Place types);
  Result<FieldValue> union_value(const FieldType& field, const FieldType& type_field, Place type,
                                 Place place);
  Result<FieldValue> member_value(const UnionType& type, std::uint8_t number, Place place);
  Result<std::uint8_t> union_type(const UnionType& type, Place place) const;
  Result<FieldValue> inline_vector(Place place, const FieldType& field);
  Result<FieldValue> file_range(Place place, const FieldType& field);
  Result<FieldValue> struct_value(Place place, const InlineType& type);

  Result<std::uint64_t> scalar(Place place, const InlineType& type) const;
  /// Reads the bytes of a scalar or struct.
  Result<void> inline_value(Place place, const InlineType& type, std::span<std::byte> out) const;
  Result<void> struct_members(Place place, std::size_t structure, std::span<std::byte> out) const;

  Error wrong(Place place, std::string_view expected) const;
  Error invalid(Place place, std::string_view message) const {
    return tape_.error_at(place, {ErrorCode::kInvalidArgument, std::string(message)});
  }

  const Schema& schema_;
  const Keys keys_;
  const JsonTape tape_;
  const std::string folder_;
  std::vector<OpenTable> open_;              // that lead to the one that was asked for last
  std::deque<Vector> vectors_;               // that were given out
  std::map<std::string, ByteSource> files_;  // by path
  std::vector<std::byte> bytes_;             // of the value that was given last
};

}  // namespace etstream
