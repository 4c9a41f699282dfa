// SPDX-License-Identifier: BSD-3-Clause
//
// FlatbufferView: reads a flatbuffer of any schema where it lies, out of core. Every offset, length and
// vtable is checked against the file's bounds when it is used, so a hostile file gives an error at worst.
//
//   ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, file));
//   ETSTREAM_ASSIGN(const auto root, view.root());
//   ETSTREAM_ASSIGN(const auto suites, view.vector(root, suites_field));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/schema.h"

namespace etstream {

inline constexpr std::uint64_t kOffsetSize = 4;
/// The size in bytes of the count of elements, before a vector or a string.
inline constexpr std::uint64_t kCountSize = 4;
/// The size in bytes of a vtable's header, before the fields' offsets: its own size and the size of its
/// table.
inline constexpr std::uint64_t kVtableHeader = 4;

/// Makes a flatbuffer without the size before it. Nothing moves, as that would change its alignment: the
/// offset to the root takes the place of the size, and the identifier follows. `name` is what messages call
/// it. Errors: kCorrupt; those of reading.
[[nodiscard]] Result<ByteSource> without_size_prefix(const ByteSource& prefixed, const std::string& name);

/// A table whose vtable lies in the file. Positions are offsets in the file. FlatBuffers' Python builder
/// before 25.12.19 shares one vtable between tables of different sizes. So the size that the vtable declares
/// for them bounds nothing, and is not read.
struct TableView {
  std::uint64_t position = 0;
  std::uint64_t vtable = 0;
  std::uint16_t vtable_size = 0;
  // Bytes at hand, so that most fields take no read of their own:
  std::array<std::uint16_t, 12> offsets{};  // the vtable's first entries: where fields are, 0 if absent
  std::array<std::byte, 36> content{};  // the bytes from the table's position on, as far as the file has them
};

/// A vector, or a string, whose elements lie in the file.
struct VectorView {
  std::uint64_t position = 0;  // of the length; the elements follow it
  std::uint32_t count = 0;

  [[nodiscard]] std::uint64_t elements() const noexcept { return position + kCountSize; }
};

/// The value of a union.
struct MemberView {
  const UnionMember* type = nullptr;
  std::uint64_t position = 0;  // of its table or string, which is checked when it is read, or of its struct
};

/// May be used by several threads at once. Errors: kCorrupt, which name the file, the offset, what was
/// expected and what was found; those of the source.
class FlatbufferView {
 public:
  /// Checks the header: root and, unless `any_identifier`, the schema's identifier if it has one. `schema`
  /// outlives the view. `name` is what messages call the file.
  [[nodiscard]] static Result<FlatbufferView> open(const Schema& schema, ByteSource file, std::string name,
                                                   bool any_identifier = false);

  [[nodiscard]] const Schema& schema() const noexcept { return *schema_; }
  [[nodiscard]] const ByteSource& file() const noexcept { return reader_->source(); }
  [[nodiscard]] const std::string& name() const noexcept { return reader_->name(); }

  [[nodiscard]] Result<TableView> root() const;
  /// Returns the table at `position`, which an offset led to.
  [[nodiscard]] Result<TableView> table(std::uint64_t position) const;

  /// Returns the position of the field's inline part; nothing if the field is absent.
  [[nodiscard]] Result<std::optional<std::uint64_t>> find(const TableView& table,
                                                          const FieldType& field) const;
  /// Returns the bytes that a table, which is one of `declared`, takes up to the end of its last known field.
  [[nodiscard]] Result<std::uint64_t> extent(const TableView& table, const TableType& declared) const;
  /// Returns a scalar's bits, zero-extended; the bits of the default if it is absent, or 0 if it has none.
  [[nodiscard]] Result<std::uint64_t> scalar(const TableView& table, const FieldType& field) const;
  [[nodiscard]] Result<std::optional<TableView>> child(const TableView& table, const FieldType& field) const;
  /// Returns a vector, or a string, whose elements are inside the file. They may lie unaligned, as
  /// FlatBuffers accepts them.
  [[nodiscard]] Result<std::optional<VectorView>> vector(const TableView& table,
                                                         const FieldType& field) const;
  [[nodiscard]] Result<std::optional<std::string>> string(const TableView& table,
                                                          const FieldType& field) const;

  /// Returns the value of the union in `field` of `table`, which is one of `declared`; nothing if its type is
  /// NONE. Error also: kCorrupt for a member that the schema lacks, or a type without its object.
  [[nodiscard]] Result<std::optional<MemberView>> member(const TableView& table, const TableType& declared,
                                                         const FieldType& field) const;

  /// Returns element `i`, which is below the vector's count, of a vector of tables or strings; or of unions,
  /// in `field` of a table of type `declared`, whose `types` are in the field before.
  [[nodiscard]] Result<TableView> table_at(const VectorView& vector, std::uint64_t i) const;
  [[nodiscard]] Result<VectorView> string_at(const VectorView& vector, std::uint64_t i) const;
  [[nodiscard]] Result<std::optional<MemberView>> member_at(const TableType& declared, const FieldType& field,
                                                            const VectorView& types, const VectorView& vector,
                                                            std::uint64_t i) const;
  /// Returns the string at `position`, which an offset led to.
  [[nodiscard]] Result<VectorView> string_object(std::uint64_t position) const;

  /// Returns the elements of an inline vector as bytes that stay in the file.
  [[nodiscard]] Result<ByteSource> bytes(const VectorView& vector, const FieldType& field) const;
  /// Returns a string's characters. Error also: kTooLarge over 1 MiB.
  [[nodiscard]] Result<std::string> characters(const VectorView& string) const;
  /// Returns the elements of a vector of scalars of the width of `T`. Error also: kTooLarge over 1 MiB.
  template <class T>
  [[nodiscard]] Result<std::vector<T>> values(const VectorView& vector) const;

  [[nodiscard]] Result<std::uint64_t> read_bits(std::uint64_t position, unsigned width) const;
  [[nodiscard]] Result<void> read(std::uint64_t position, std::span<std::byte> out) const;
  /// Returns the first byte in [begin, end), which is inside the file, that is not zero.
  [[nodiscard]] Result<std::optional<NonzeroByte>> find_nonzero(std::uint64_t begin,
                                                                std::uint64_t end) const {
    return etstream::find_nonzero(*reader_, begin, end);
  }
  /// Makes the error "FILE: offset POSITION: expected EXPECTED, found FOUND".
  [[nodiscard]] Error corrupt(std::uint64_t position, std::string_view expected,
                              std::string_view found) const;

 private:
  FlatbufferView(const Schema& schema, ByteSource file, std::string name)
      : schema_(&schema), reader_(std::make_unique<PagedReader>(std::move(file), std::move(name))) {}

  /// An offset, and where in the file it is.
  struct Offset {
    std::uint64_t position = 0;
    std::uint64_t distance = 0;
  };
  /// Reads the offset at `position`, in `table` if one is given.
  Result<Offset> offset_at(std::uint64_t position, const TableView* table = nullptr) const;
  /// Returns the position that the field's offset leads to; nothing if the field is absent.
  Result<std::optional<std::uint64_t>> target_of(const TableView& table, const FieldType& field) const;
  /// Reads the bits at `position`, which is behind the table's.
  Result<std::uint64_t> bits_in(const TableView& table, std::uint64_t position, unsigned width) const;
  /// Follows an offset: forward, to `size` bytes inside the file that lie at a multiple of `alignment`.
  Result<std::uint64_t> follow(const Offset& offset, std::uint64_t size = 4,
                               std::uint64_t alignment = 4) const;
  /// Returns the position that element `i` of a vector of tables or strings leads to.
  Result<std::uint64_t> element_at(const VectorView& vector, std::uint64_t i) const;
  /// Returns member number `type` behind an offset. The type itself is at `type_position`.
  Result<std::optional<MemberView>> member_of(const TableType& declared, const FieldType& field,
                                              std::uint64_t type, std::uint64_t type_position,
                                              const Offset& offset) const;
  Result<VectorView> vector_at(std::uint64_t position, std::uint64_t element_size) const;
  Result<void> check_small(const VectorView& vector, std::uint64_t element_size) const;

  const Schema* schema_;
  std::unique_ptr<PagedReader> reader_;
};

template <class T>
Result<std::vector<T>> FlatbufferView::values(const VectorView& vector) const {
  if (auto small = check_small(vector, sizeof(T)); !small) return std::move(small).error();
  std::vector<T> out(vector.count);
  auto done = read(vector.elements(), std::as_writable_bytes(std::span(out)));
  if (!done) return std::move(done).error();
  return out;
}

// walk_flatbuffer(): goes through all that a flatbuffer's root leads to, in the order of the schema's fields.
//
//   struct CountTables : FlatbufferVisitor {
//     Result<void> begin_table(const TableView&, const TableType&) { return ++tables, Result<void>(); }
//     std::uint64_t tables = 0;
//   };

/// The functions that a walk calls. A visitor derives from it and declares again those that it needs.
struct FlatbufferVisitor {
  /// Returns whether the walk goes into a field of a table at all.
  static bool wants(const FieldType&) { return true; }
  static Result<void> begin_table(const TableView&, const TableType&) { return {}; }
  static Result<void> end_table() { return {}; }
  /// Reports a field that `table` lacks; a union only if it is required.
  static Result<void> absent(const TableView&, const TableType&, const FieldType&) { return {}; }
  /// Reports a union with a value and no type.
  static Result<void> untyped(const TableView&, const TableType&, const FieldType&) { return {}; }
  /// Announces that the following calls are about `field`. `member` is what a union holds, null for other
  /// fields.
  static void begin_field(const TableType&, const FieldType&, const UnionMember* /*member*/) {}
  /// Reports that the offset at `at` leads to `target`.
  static void link(std::uint64_t /*at*/, std::uint64_t /*target*/) {}
  /// Reports the bytes of a string, of a vector of offsets or of types, or of a struct in a union.
  static Result<void> reach(std::uint64_t /*position*/, std::uint64_t /*size*/) { return {}; }
  /// Reports a scalar or a struct: a field, or a union's member.
  static Result<void> inline_value(std::uint64_t /*position*/, const InlineType&) { return {}; }
  static Result<void> string(const VectorView&) { return {}; }
  static Result<void> inline_vector(const VectorView&, const FieldType&) { return {}; }
  /// Announces a vector whose elements follow. `types` are those of unions.
  static Result<void> begin_vector(const TableType&, const FieldType&, const VectorView& /*types*/,
                                   const VectorView&) {
    return {};
  }
  /// Reports an element that is a union of no type.
  static Result<void> no_member() { return {}; }
  static void end_vector() {}
};

template <class Visitor>
class FlatbufferWalk {
 public:
  FlatbufferWalk(const FlatbufferView& view, Visitor& visitor) : view_(view), visitor_(visitor) {}

  Result<void> run() {
    ETSTREAM_ASSIGN(const TableView root, view_.root());
    visitor_.link(0, root.position);
    return walk_table(root, view_.schema().root_index(), 1);
  }

 private:
  Result<void> walk_table(const TableView& table, std::size_t type, int depth) {
    const TableType& declared = view_.schema().tables()[type];
    if (depth > kDeepestTable) {
      return view_.corrupt(table.position, text("tables nested at most {} deep", kDeepestTable),
                           declared.name);
    }
    ETSTREAM_TRY(visitor_.begin_table(table, declared));
    for (const FieldType& field : declared.fields) {
      if (visitor_.wants(field)) ETSTREAM_TRY(walk_field(table, declared, field, depth));
    }
    return visitor_.end_table();
  }

  Result<void> walk_field(const TableView& table, const TableType& declared, const FieldType& field,
                          int depth) {
    ETSTREAM_ASSIGN(const auto position, view_.find(table, field));
    if (field.kind == FieldKind::kUnion && (position || !field.required)) {
      // An absent union has a type too, which must be NONE.
      ETSTREAM_ASSIGN(const auto member, view_.member(table, declared, field));
      if (!member) return position ? visitor_.untyped(table, declared, field) : Result<void>();
      visitor_.begin_field(declared, field, member->type);
      return walk_member(*position, *member, depth);
    }
    if (!position) return visitor_.absent(table, declared, field);
    visitor_.begin_field(declared, field, nullptr);
    switch (field.kind) {
      case FieldKind::kScalar:
      case FieldKind::kStruct:
      case FieldKind::kUnionType:
        return visitor_.inline_value(*position, field);
      case FieldKind::kTable: {
        ETSTREAM_ASSIGN(const auto child, view_.child(table, field));
        visitor_.link(*position, child->position);
        return walk_table(*child, field.type, depth + 1);
      }
      default: {
        ETSTREAM_ASSIGN(const auto vector, view_.vector(table, field));
        visitor_.link(*position, vector->position);
        if (field.kind == FieldKind::kString) return walk_string(*vector);
        if (field.kind == FieldKind::kInlineVector) return visitor_.inline_vector(*vector, field);
        if (field.kind != FieldKind::kUnionTypeVector)
          return walk_vector(table, declared, field, *vector, depth);
        return visitor_.reach(vector->position, kCountSize + vector->count);
      }
    }
  }

  Result<void> walk_vector(const TableView& table, const TableType& declared, const FieldType& field,
                           const VectorView& vector, int depth) {
    VectorView types;
    if (field.kind == FieldKind::kUnionVector) {
      const FieldType& type_field = declared.types_of(field);
      ETSTREAM_ASSIGN(const auto found, view_.vector(table, type_field));
      if (!found)
        return view_.corrupt(table.position, text("{}.{}", declared.name, type_field.name), "nothing");
      types = *found;
    }
    ETSTREAM_TRY(visitor_.reach(vector.position, kCountSize + vector.count * kOffsetSize));
    ETSTREAM_TRY(visitor_.begin_vector(declared, field, types, vector));
    for (std::uint64_t i = 0; i < vector.count; ++i) {
      const std::uint64_t at = vector.elements() + i * kOffsetSize;
      if (field.kind == FieldKind::kTableVector) {
        ETSTREAM_ASSIGN(const TableView child, view_.table_at(vector, i));
        visitor_.link(at, child.position);
        ETSTREAM_TRY(walk_table(child, field.type, depth + 1));
      } else if (field.kind == FieldKind::kStringVector) {
        ETSTREAM_ASSIGN(const VectorView string, view_.string_at(vector, i));
        visitor_.link(at, string.position);
        ETSTREAM_TRY(walk_string(string));
      } else {
        ETSTREAM_ASSIGN(const auto member, view_.member_at(declared, field, types, vector, i));
        ETSTREAM_TRY(member ? walk_member(at, *member, depth) : visitor_.no_member());
      }
    }
    visitor_.end_vector();
    return {};
  }

  /// Walks the value of a union, behind the offset at `at`.
  Result<void> walk_member(std::uint64_t at, const MemberView& member, int depth) {
    visitor_.link(at, member.position);
    if (member.type->kind == FieldKind::kStruct) {
      ETSTREAM_TRY(visitor_.reach(member.position, member.type->width));
      return visitor_.inline_value(member.position, *member.type);
    }
    if (member.type->kind == FieldKind::kString) {
      ETSTREAM_ASSIGN(const VectorView string, view_.string_object(member.position));
      return walk_string(string);
    }
    ETSTREAM_ASSIGN(const TableView table, view_.table(member.position));
    return walk_table(table, member.type->type, depth + 1);
  }

  Result<void> walk_string(const VectorView& string) {
    ETSTREAM_TRY(visitor_.reach(string.position, kCountSize + string.count + 1));
    return visitor_.string(string);
  }

  const FlatbufferView& view_;
  Visitor& visitor_;
};

/// Checks every offset that it follows. Errors: kCorrupt, also for tables nested deeper than kDeepestTable;
/// those of `visitor`.
template <class Visitor>
[[nodiscard]] Result<void> walk_flatbuffer(const FlatbufferView& view, Visitor& visitor) {
  return FlatbufferWalk<Visitor>(view, visitor).run();
}

}  // namespace etstream
