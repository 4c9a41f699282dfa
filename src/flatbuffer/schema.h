// SPDX-License-Identifier: BSD-3-Clause
//
// Schema: the tables of a flatbuffer and their fields, as data; and schemas as people write them, turned into
// the binary form that it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/result.h"

namespace flatbuffers {
class Parser;
struct IDLOptions;
}  // namespace flatbuffers

namespace etstream {

/// The deepest nesting of tables: FlatBuffers' own verifier stops there.
inline constexpr int kDeepestTable = 64;

enum class FieldKind {
  kScalar,     // inline; enums are scalars
  kStruct,     // inline: bytes as they are, fixed arrays included
  kUnionType,  // inline: which member the union in the next field is; 0 is none
  kUnion,      // a table, a struct or a string, as the field before says
  kTable,
  kString,
  kInlineVector,  // of scalars or structs
  kTableVector,
  kStringVector,
  kUnionTypeVector,  // of the types of the unions in the next field
  kUnionVector,
};

/// A scalar or a struct, which lies inline where it is used.
struct InlineType {
  std::uint32_t width = 0;              // in bytes; of a scalar 1, 2, 4 or 8
  std::uint32_t natural_alignment = 1;  // of a scalar its width
  bool is_float = false;
  bool is_signed = false;
  bool is_bool = false;
  std::optional<std::size_t> enumeration;  // of a scalar: an index in Schema::enums()
  std::optional<std::size_t> structure;    // of a struct: an index in Schema::structs()

  /// Returns a mask of the bits that a scalar has.
  [[nodiscard]] constexpr std::uint64_t mask() const noexcept {
    return ~std::uint64_t{0} >> (64 - 8 * width);
  }
};

/// Returns whether the type is a plain byte: one byte wide, no bool, no enumeration, no struct. A vector of
/// them is bytes.
[[nodiscard]] inline bool is_byte(const InlineType& type) {
  return type.width == 1 && !type.is_bool && !type.enumeration && !type.structure;
}

/// The type of a field. Its inline part is the field itself, or an element of an inline vector.
struct FieldType : InlineType {
  std::string name;
  std::uint16_t id = 0;  // its place in the vtable
  FieldKind kind = FieldKind::kScalar;
  bool required = false;
  bool deprecated = false;
  bool is_c_string = false;   // a string without a zero byte, at which its readers would end it
  bool is_not_empty = false;  // a string that has characters
  std::optional<std::uint64_t> default_bits;  // a scalar that equals it is not stored
  // The alignment of an inline vector: at least natural_alignment, more with force_align.
  std::uint32_t alignment = 1;
  // The index of a table or a table vector in Schema::tables(), or of unions in Schema::unions().
  std::size_t type = 0;
};

/// The most bytes that a name has. A FlatbufferView reads no longer string or list as a whole.
inline constexpr std::uint64_t kLongestString = std::uint64_t{1} << 20;

/// Returns the rule for a string of `field` that `value` breaks, in words that follow "expected"; empty if it
/// breaks none. This function alone decides what names may hold.
[[nodiscard]] std::string_view unmet_rule(const FieldType& field, std::string_view value);

[[nodiscard]] inline bool is_type_of_unions(const FieldType& field) {
  return field.kind == FieldKind::kUnionType || field.kind == FieldKind::kUnionTypeVector;
}

/// A member of a union: a table, a string, or a struct. Only a struct is inline in it.
struct UnionMember : InlineType {
  std::string name;
  FieldKind kind = FieldKind::kTable;
  std::size_t type = 0;  // of a table
};

struct TableType {
  std::string name;               // without namespaces
  std::vector<FieldType> fields;  // fields[i].id == i

  /// Returns the field that has the types of the unions in `field`.
  [[nodiscard]] const FieldType& types_of(const FieldType& field) const { return fields[field.id - 1U]; }
};

/// A scalar, a struct, or a fixed array of either.
struct StructMember : InlineType {
  std::string name;
  std::uint32_t offset = 0;            // in the struct
  std::optional<std::uint32_t> count;  // of an array's elements
};

struct StructType {
  std::string name;
  std::vector<StructMember> members;  // by offset, which do not overlap
};

struct EnumValue {
  std::string name;
  std::uint64_t bits = 0;  // in the width of the enum's fields, zero-extended
};

struct EnumType {
  std::string name;
  bool is_flags = false;  // each value is one bit, and they are combined
  std::vector<EnumValue> values;

  /// Returns null for a value without a name.
  [[nodiscard]] const EnumValue* find(std::uint64_t bits) const;
  [[nodiscard]] const EnumValue* find(std::string_view value_name) const;
};

struct UnionType {
  std::string name;
  /// The members by their numbers; nothing for 0 and for gaps.
  std::vector<std::optional<UnionMember>> members;

  /// Returns null for a number that no member has.
  [[nodiscard]] const UnionMember* member(std::uint64_t number) const {
    return number < members.size() && members[number] ? &*members[number] : nullptr;
  }
  /// Returns the number of a member; 0 for NONE.
  [[nodiscard]] std::optional<std::uint8_t> number_of(std::string_view member) const;
};

/// A value. Const use from several threads is safe.
class Schema {
 public:
  /// Reads a binary schema, as `flatc --schema --binary --bfbs-builtins` writes it (without the
  /// builtins it has no force_align). Errors: kCorrupt, and kUnsupported for what came to FlatBuffers
  /// after 2.0 (64-bit offsets).
  [[nodiscard]] static Result<Schema> from_binary(std::span<const std::byte> bfbs);

  [[nodiscard]] const std::vector<TableType>& tables() const noexcept { return tables_; }
  [[nodiscard]] const std::vector<UnionType>& unions() const noexcept { return unions_; }
  /// Returns the structs at their indices; entries for other objects are empty.
  [[nodiscard]] const std::vector<StructType>& structs() const noexcept { return structs_; }
  /// Returns the enums that are no unions at their indices; other entries are empty.
  [[nodiscard]] const std::vector<EnumType>& enums() const noexcept { return enums_; }
  [[nodiscard]] const TableType& root() const noexcept { return tables_[root_]; }
  [[nodiscard]] std::size_t root_index() const noexcept { return root_; }
  /// Returns the 4 bytes of the identifier, or none.
  [[nodiscard]] const std::string& identifier() const noexcept { return identifier_; }

  /// Returns the index of a table, or of a field in it, by name.
  [[nodiscard]] std::optional<std::size_t> find_table(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> find_field(std::size_t table, std::string_view name) const;

  /// Appends a scalar or an inline vector to a table, for this schema alone. Error: kInvalidArgument if the
  /// table does not exist, or has a field of that name.
  [[nodiscard]] Result<void> add_field(std::string_view table, FieldType field);

  /// Takes over the rules that `known` gives the strings of fields that both schemas have.
  void take_string_rules(const Schema& known);

  /// Overrides the alignment of an inline vector, for this schema alone. Error: kInvalidArgument unless
  /// `alignment` is a power of two, at least the elements' own and at most 2^16.
  [[nodiscard]] Result<void> set_alignment(std::string_view table, std::string_view field,
                                           std::uint64_t alignment);

 private:
  std::vector<TableType> tables_;
  std::vector<UnionType> unions_;
  std::vector<StructType> structs_;
  std::vector<EnumType> enums_;
  std::size_t root_ = 0;
  std::string identifier_;
};

/// Returns the schema of schema/ that is compiled in as `Binary`, a class that schema/compile_schema.cpp
/// makes of it. The same object at every call.
template <class Binary>
[[nodiscard]] Result<const Schema*> embedded_schema() {
  static const Result<Schema> kSchema =
      Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size())));
  if (!kSchema) return kSchema.error();
  return &*kSchema;
}

/// The size in bytes of the longest schema, without its includes.
inline constexpr std::size_t kLargestSchema = std::size_t{16} << 20;

/// Returns the binary form, with builtins, of the schema in a .fbs file. An included file is looked for next
/// to the file that includes it, then in `include_folders`, then next to `path`. A binary schema (.bfbs) is
/// returned as it is. Errors: kCorrupt for a file that is no schema, with file and line; kUnsupported for a
/// default over 2^63 - 1; kTooLarge, also for more includes than can be read in time that grows with their
/// size; the file's own.
[[nodiscard]] Result<std::vector<std::byte>> compile_schema(
    const std::string& path, const std::vector<std::string>& include_folders = {});

/// A schema that is loaded from a file, and what its flatbuffers are called.
struct LoadedSchema {
  std::vector<std::byte> binary;
  Schema schema;
  std::string file_extension;  // without a point; "bin" where the schema gives none
};

/// Loads a schema from a file. Errors: those of compile_schema() and, with `path` before them, of
/// Schema::from_binary().
[[nodiscard]] Result<LoadedSchema> load_schema(const std::string& path,
                                               const std::vector<std::string>& include_folders);

/// Returns the options of all parsers in this library, which give no warnings.
[[nodiscard]] flatbuffers::IDLOptions parser_options();

/// Returns the last error of `parser`, which has parser_options(), as ours: "FILE: line N: WHAT". FILE is the
/// file with the error.
[[nodiscard]] Error parser_error(const flatbuffers::Parser& parser);

}  // namespace etstream
