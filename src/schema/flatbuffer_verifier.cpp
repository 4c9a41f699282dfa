// SPDX-License-Identifier: BSD-3-Clause
#include "schema/flatbuffer_verifier.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "base/try.h"
#include "io/find_nonzero.h"
#include "schema/walk_budget.h"

namespace etstream {
namespace {

constexpr std::uint64_t kCountSize = 4;  // of a vector or string

class Verifier {
 public:
  Verifier(const FlatbufferView& view, std::vector<UsedRange> used, const FlatbufferChecks& checks)
      : view_(view), checks_(checks), used_(std::move(used)), budget_(view) {}

  Result<void> run() {
    const std::uint64_t size = view_.file().size();
    if (checks_.between_objects && size % kOffsetSize != 0) {
      return view_.corrupt(size, text("an end at a multiple of ", kOffsetSize, ", as builders align it"),
                           counted(size, "byte"));
    }
    use(0, kOffsetSize + view_.schema().identifier().size());
    ETSTREAM_ASSIGN(const TableView root, view_.root());
    ETSTREAM_TRY(verify_table(root, view_.schema().root_index(), 1));
    return checks_.between_objects ? verify_gaps() : Result<void>();
  }

 private:
  void use(std::uint64_t begin, std::uint64_t size) { used_.push_back({begin, begin + size}); }

  Result<void> visit(std::uint64_t position, std::uint64_t size) {
    use(position, size);
    return budget_.spend(position, size);
  }

  Result<void> verify_table(const TableView& table, std::size_t type, int depth) {
    const TableType& declared = view_.schema().tables()[type];
    if (depth > kDeepestTable) {
      return view_.corrupt(table.position, text("tables nested at most ", kDeepestTable, " deep"),
                           declared.name);
    }
    ETSTREAM_TRY(visit(table.position, table.size));
    if (vtables_.insert(table.vtable).second) use(table.vtable, table.vtable_size);
    for (const FieldType& field : declared.fields) ETSTREAM_TRY(verify_field(table, declared, field, depth));
    return {};
  }

  Result<void> verify_field(const TableView& table, const TableType& declared, const FieldType& field,
                            int depth) {
    ETSTREAM_ASSIGN(const auto position, view_.find(table, field));
    // A union that is absent is still verified: its type must say so.
    if (!position && (field.required || field.kind != FieldKind::kUnion)) {
      if (!field.required) return {};
      return view_.corrupt(table.position, text(declared.name, ".", field.name), "nothing");
    }
    switch (field.kind) {
      case FieldKind::kScalar:
      case FieldKind::kStruct:
      case FieldKind::kUnionType:
        return {};
      case FieldKind::kTable: {
        ETSTREAM_ASSIGN(const auto child, view_.child(table, field));
        return verify_table(*child, field.type, depth + 1);
      }
      case FieldKind::kUnion: {
        ETSTREAM_ASSIGN(const auto member, view_.member(table, declared, field));
        return member ? verify_member(*member, depth) : Result<void>();
      }
      case FieldKind::kString:
      case FieldKind::kInlineVector:
      case FieldKind::kTableVector:
      case FieldKind::kStringVector:
      case FieldKind::kUnionTypeVector:
        return verify_vector(table, field, depth);
      case FieldKind::kUnionVector:
        return verify_union_vector(table, declared, field, depth);
    }
    return {};
  }

  Result<void> verify_member(const MemberView& member, int depth) {
    switch (member.type->kind) {
      case FieldKind::kStruct:
        return visit(member.position, member.type->width);
      case FieldKind::kString: {
        ETSTREAM_ASSIGN(const VectorView string, view_.string_object(member.position));
        return visit(string.position, kCountSize + string.count + 1);
      }
      default: {
        ETSTREAM_ASSIGN(const TableView table, view_.table(member.position));
        return verify_table(table, member.type->type, depth + 1);
      }
    }
  }

  Result<void> verify_union_vector(const TableView& table, const TableType& declared, const FieldType& field,
                                   int depth) {
    const FieldType& type_field = declared.fields[std::size_t{field.id} - 1];
    ETSTREAM_ASSIGN(const auto types, view_.vector(table, type_field));
    ETSTREAM_ASSIGN(const auto vector, view_.vector(table, field));
    if (!types) return view_.corrupt(table.position, text(declared.name, ".", type_field.name), "nothing");
    ETSTREAM_TRY(visit(vector->position, kCountSize + std::uint64_t{vector->count} * kOffsetSize));
    for (std::uint64_t i = 0; i < vector->count; ++i) {
      ETSTREAM_ASSIGN(const auto member, view_.member_at(declared, field, *types, *vector, i));
      if (member) ETSTREAM_TRY(verify_member(*member, depth));
    }
    return {};
  }

  Result<void> verify_vector(const TableView& table, const FieldType& field, int depth) {
    ETSTREAM_ASSIGN(const auto vector, view_.vector(table, field));
    const std::uint64_t count = vector->count;
    switch (field.kind) {
      case FieldKind::kString:
        return visit(vector->position, kCountSize + count + 1);
      case FieldKind::kUnionTypeVector:
        return visit(vector->position, kCountSize + count);
      case FieldKind::kInlineVector:
        use(vector->position, kCountSize + count * field.width);
        // Bytes are payloads, which hardly anybody walks through.
        return budget_.spend(
            vector->position,
            kCountSize + (field.width == 1 && !checks_.walks_bytes ? 0 : count * field.width));
      default:
        ETSTREAM_TRY(visit(vector->position, kCountSize + count * kOffsetSize));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (field.kind == FieldKind::kTableVector) {
        ETSTREAM_ASSIGN(const TableView child, view_.table_at(*vector, i));
        ETSTREAM_TRY(verify_table(child, field.type, depth + 1));
      } else {
        ETSTREAM_ASSIGN(const VectorView string, view_.string_at(*vector, i));
        ETSTREAM_TRY(visit(string.position, kCountSize + string.count + 1));
      }
    }
    return {};
  }

  /// Whether the ranges in use lie apart from each other, or on each other where one is shared, and only
  /// zeros lie between them.
  Result<void> verify_gaps() {
    std::sort(used_.begin(), used_.end(), [](const UsedRange& a, const UsedRange& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    UsedRange last;
    for (const UsedRange& range : used_) {
      if (range.begin == last.begin && range.end == last.end) continue;
      if (range.begin < last.end) {
        return view_.corrupt(
            range.begin, text("nothing before offset ", last.end, ", where what is at ", last.begin, " ends"),
            "another object");
      }
      ETSTREAM_TRY(verify_zeros(last.end, range.begin));
      last = range;
    }
    return verify_zeros(last.end, view_.file().size());
  }

  Result<void> verify_zeros(std::uint64_t begin, std::uint64_t end) {
    if (end - begin <= sizeof(std::uint64_t)) {
      // The usual padding, next to what was read just now.
      ETSTREAM_ASSIGN(const std::uint64_t bits, view_.read_bits(begin, static_cast<unsigned>(end - begin)));
      if (bits == 0) return {};
    }
    ETSTREAM_ASSIGN(const auto wrong, find_nonzero(view_.file(), begin, end));
    if (!wrong) return {};
    return view_.corrupt(wrong->offset, "zero, in the padding between objects", text(wrong->value));
  }

  const FlatbufferView& view_;
  const FlatbufferChecks checks_;
  std::vector<UsedRange> used_;
  WalkBudget budget_;                          // for those who walk after it, too
  std::unordered_set<std::uint64_t> vtables_;  // that are in used_
};

}  // namespace

Result<void> verify_flatbuffer(const FlatbufferView& view, const std::vector<UsedRange>& also_used,
                               const FlatbufferChecks& checks) {
  return without_exceptions([&] { return Verifier(view, also_used, checks).run(); });
}

}  // namespace etstream
