// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/flatbuffer_verifier.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/walk_budget.h"
#include "io/find_nonzero.h"

namespace etstream {
namespace {

constexpr std::uint64_t kCountSize = 4;  // of a vector or string

/// What a walk meets, for those who look at more than whether reading is safe.
struct Met {
  bool keeps_extents = false;
  std::vector<UsedRange> extents;  // of objects: of a table up to the end of its last known field
  std::set<std::pair<std::uint64_t, const TableType*>>
      vtables;                           // that were looked through, by their tables' types
  std::optional<std::string> unaligned;  // the first vector that is
  std::optional<std::string> unknown;    // the first field that the schema lacks
};

class Walk {
 public:
  /// `met` may be null.
  Walk(const FlatbufferView& view, const FlatbufferChecks& checks, Met* met)
      : view_(view), checks_(checks), met_(met), budget_(view) {}

  Result<void> run() {
    use(0, kOffsetSize + view_.schema().identifier().size());
    ETSTREAM_ASSIGN(const TableView root, view_.root());
    return verify_table(root, view_.schema().root_index(), 1);
  }

 private:
  void use(std::uint64_t begin, std::uint64_t size) {
    if (met_ && met_->keeps_extents) met_->extents.push_back({begin, begin + size});
  }

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
    ETSTREAM_ASSIGN(const std::uint64_t extent, view_.extent(table, declared));
    ETSTREAM_TRY(visit(table.position, extent));
    if (met_) ETSTREAM_TRY(look_through_vtable(table, declared));
    for (const FieldType& field : declared.fields) ETSTREAM_TRY(verify_field(table, declared, field, depth));
    return {};
  }

  Result<void> look_through_vtable(const TableView& table, const TableType& declared) {
    if (!met_->vtables.insert({table.vtable, &declared}).second) return {};
    ETSTREAM_TRY(visit(table.vtable, table.vtable_size));
    for (std::uint64_t slot = kVtableHeader + 2 * declared.fields.size();
         !met_->unknown && slot + 2 <= table.vtable_size; slot += 2) {
      ETSTREAM_ASSIGN(const std::uint64_t offset, view_.read_bits(table.vtable + slot, 2));
      if (offset == 0) continue;
      met_->unknown = view_
                          .corrupt(table.vtable + slot,
                                   text("the ", declared.fields.size(), " fields of ", declared.name,
                                        " that the schema has"),
                                   text("field ", (slot - kVtableHeader) / 2, ", which is not read"))
                          .message;
    }
    return {};
  }

  /// `vector` has elements that are read `alignment` bytes at once.
  void see_alignment(const VectorView& vector, std::uint64_t alignment) {
    if (!met_ || met_->unaligned || vector.count == 0 || vector.elements() % alignment == 0) return;
    met_->unaligned =
        view_
            .corrupt(vector.position, text("a vector whose elements lie at a multiple of ", alignment),
                     text("elements at ", vector.elements()))
            .message;
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
        if (!member && position && checks_.typed_unions) {
          return view_.corrupt(table.position,
                               text("a type of the value in ", declared.name, ".", field.name), "none");
        }
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
        see_alignment(*vector, field.natural_alignment);
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

  const FlatbufferView& view_;
  const FlatbufferChecks checks_;
  Met* met_;
  WalkBudget budget_;  // for those who walk after it, too
};

/// Looks at what lies between objects.
class Gaps {
 public:
  Gaps(const FlatbufferView& view, std::vector<UsedRange> extents)
      : view_(view), extents_(std::move(extents)) {
    std::sort(extents_.begin(), extents_.end(), [](const UsedRange& a, const UsedRange& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
  }

  /// The first object that lies on another, unless both are one that is shared.
  [[nodiscard]] std::optional<std::string> overlap() const {
    UsedRange last;
    for (const UsedRange& extent : extents_) {
      if (extent.begin == last.begin && extent.end == last.end) continue;
      if (extent.begin < last.end) {
        return view_
            .corrupt(extent.begin,
                     text("nothing before offset ", last.end, ", where what is at ", last.begin, " ends"),
                     "another object")
            .message;
      }
      last = extent;
    }
    return {};
  }

  /// The first byte that is not zero and no object's.
  [[nodiscard]] Result<std::optional<std::string>> nonzero() const {
    std::uint64_t end = 0;
    for (const UsedRange& extent : extents_) {
      if (extent.begin > end) {
        ETSTREAM_ASSIGN(auto found, nonzero_in(end, extent.begin));
        if (found) return found;
      }
      end = std::max(end, extent.end);
    }
    return nonzero_in(end, view_.file().size());
  }

 private:
  [[nodiscard]] Result<std::optional<std::string>> nonzero_in(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return std::optional<std::string>();
    if (end - begin <= sizeof(std::uint64_t)) {
      // The usual padding, next to what was read just now.
      ETSTREAM_ASSIGN(const std::uint64_t bits, view_.read_bits(begin, static_cast<unsigned>(end - begin)));
      if (bits == 0) return std::optional<std::string>();
    }
    ETSTREAM_ASSIGN(const auto found, find_nonzero(view_.file(), begin, end));
    if (!found) return std::optional<std::string>();
    return std::optional(
        view_.corrupt(found->offset, "zero, in the padding between objects", text(found->value)).message);
  }

  const FlatbufferView& view_;
  std::vector<UsedRange> extents_;
};

}  // namespace

Result<void> verify_flatbuffer(const FlatbufferView& view, const FlatbufferChecks& checks) {
  return without_exceptions([&] { return Walk(view, checks, nullptr).run(); });
}

Result<std::optional<std::string>> find_unknown_field(const FlatbufferView& view) {
  return without_exceptions([&]() -> Result<std::optional<std::string>> {
    Met met;
    ETSTREAM_TRY(Walk(view, {}, &met).run());
    return std::move(met.unknown);
  });
}

Result<std::vector<std::string>> find_flaws_of_layout(const FlatbufferView& view,
                                                      const std::vector<UsedRange>& also_used) {
  return without_exceptions([&]() -> Result<std::vector<std::string>> {
    Met met;
    met.keeps_extents = true;
    met.extents = also_used;
    ETSTREAM_TRY(Walk(view, {}, &met).run());
    std::vector<std::string> flaws;
    const auto add = [&](std::optional<std::string> flaw) {
      if (flaw) flaws.push_back(std::move(*flaw));
    };
    const std::uint64_t size = view.file().size();
    if (size % kOffsetSize != 0) {
      add(view.corrupt(size, text("an end at a multiple of ", kOffsetSize, ", as builders align it"),
                       counted(size, "byte"))
              .message);
    }
    add(std::move(met.unaligned));
    const Gaps gaps(view, std::move(met.extents));
    add(gaps.overlap());
    if (met.unknown) {
      add(std::move(met.unknown));  // and what it leads to is no padding
    } else {
      ETSTREAM_ASSIGN(auto nonzero, gaps.nonzero());
      add(std::move(nonzero));
    }
    return flaws;
  });
}

}  // namespace etstream
