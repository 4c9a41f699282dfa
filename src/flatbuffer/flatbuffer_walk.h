// SPDX-License-Identifier: BSD-3-Clause
//
// walk_flatbuffer(): goes through all that a flatbuffer's root leads to, in the order of the schema's fields.
//
//   struct CountTables : FlatbufferVisitor {
//     Result<void> begin_table(const TableView&, const TableType&) { return ++tables, Result<void>(); }
//     std::uint64_t tables = 0;
//   };
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/result.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {

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
