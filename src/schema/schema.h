// SPDX-License-Identifier: BSD-3-Clause
//
// Schema: which tables a flatbuffer has and what is in them, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/result.h"

namespace etstream {

/// How deep tables may be nested: FlatBuffers' own verifier stops there.
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

struct FieldType {
  std::string name;
  std::uint16_t id = 0;  // its place in the vtable
  FieldKind kind = FieldKind::kScalar;
  bool required = false;
  bool deprecated = false;
  // Of a scalar or struct, or of an inline vector's elements:
  std::uint32_t width = 0;              // in bytes; of a scalar 1, 2, 4 or 8
  std::uint32_t natural_alignment = 1;  // of a scalar its width
  bool is_float = false;
  std::optional<std::uint64_t> default_bits = 0;  // a scalar that equals it is not stored
  // Of an inline vector: at least natural_alignment, more with force_align.
  std::uint32_t alignment = 1;
  // Of a table or a table vector: an index in Schema::tables(). Of unions: one in Schema::unions().
  std::size_t type = 0;
};

/// A table, a struct or a string.
struct UnionMember {
  FieldKind kind = FieldKind::kTable;
  std::size_t type = 0;                 // of a table
  std::uint32_t width = 0;              // of a struct
  std::uint32_t natural_alignment = 1;  // of a struct
};

struct TableType {
  std::string name;               // without namespaces
  std::vector<FieldType> fields;  // fields[i].id == i
};

struct UnionType {
  std::string name;
  /// By their numbers; none for 0 and for gaps.
  std::vector<std::optional<UnionMember>> members;

  /// Null for a number that no member has.
  [[nodiscard]] const UnionMember* member(std::uint64_t number) const {
    return number < members.size() && members[number] ? &*members[number] : nullptr;
  }
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
  [[nodiscard]] const TableType& root() const noexcept { return tables_[root_]; }
  [[nodiscard]] std::size_t root_index() const noexcept { return root_; }
  /// 4 bytes, or none.
  [[nodiscard]] const std::string& identifier() const noexcept { return identifier_; }
  /// Takes files with any identifier, or none, from now on.
  void clear_identifier() noexcept { identifier_.clear(); }

  /// The index of a table, or of a field in it, by name.
  [[nodiscard]] std::optional<std::size_t> find_table(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> find_field(std::size_t table, std::string_view name) const;

  /// Overrides the alignment of an inline vector, for this schema alone. Error: kInvalidArgument unless
  /// `alignment` is a power of two, at least the elements' own and at most 2^16.
  [[nodiscard]] Result<void> set_alignment(std::string_view table, std::string_view field,
                                           std::uint64_t alignment);

 private:
  std::vector<TableType> tables_;
  std::vector<UnionType> unions_;
  std::size_t root_ = 0;
  std::string identifier_;
};

}  // namespace etstream
