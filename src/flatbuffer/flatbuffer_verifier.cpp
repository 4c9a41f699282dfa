// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/flatbuffer_verifier.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {
namespace {

/// The facts that a walk collects for checks of more than safe reading.
struct Met {
  bool keeps_extents = false;
  std::uint64_t end = 0;           // of the last object
  std::vector<UsedRange> extents;  // of objects: of a table up to the end of its last known field
  std::set<std::pair<std::uint64_t, const TableType*>>
      vtables;                     // that were looked through, by their tables' types
  std::optional<Error> unaligned;  // the first vector that is
  std::optional<Error> unknown;    // the first field that the schema lacks
};

class Verification : public FlatbufferVisitor {
 public:
  /// `met` may be null.
  Verification(const FlatbufferView& view, const FlatbufferChecks& checks, Met* met)
      : view_(view), checks_(checks), met_(met), budget_(view.name(), view.file().size()) {}

  Result<void> run() {
    use(0, kOffsetSize + view_.schema().identifier().size());
    return walk_flatbuffer(view_, *this);
  }

  Result<void> begin_table(const TableView& table, const TableType& declared) {
    ETSTREAM_ASSIGN(const std::uint64_t extent, view_.extent(table, declared));
    ETSTREAM_TRY(reach(table.position, extent));
    return met_ ? look_through_vtable(table, declared) : Result<void>();
  }
  Result<void> absent(const TableView& table, const TableType& declared, const FieldType& field) const {
    if (!field.required) return {};
    return view_.corrupt(table.position, text("{}.{}", declared.name, field.name), "nothing");
  }
  Result<void> untyped(const TableView& table, const TableType& declared, const FieldType& field) const {
    if (!checks_.typed_unions) return {};
    return view_.corrupt(table.position, text("a type of the value in {}.{}", declared.name, field.name),
                         "none");
  }
  Result<void> reach(std::uint64_t position, std::uint64_t size) {
    use(position, size);
    return budget_.reach(position, size);
  }
  void begin_field(const TableType& table, const FieldType& field, const UnionMember*) {
    table_ = &table;
    field_ = &field;
  }
  Result<void> string(const VectorView& string) const {
    if (!field_->is_c_string && !field_->is_not_empty) return {};
    ETSTREAM_ASSIGN(const std::string value, view_.characters(string));
    const std::string_view unmet = unmet_rule(*field_, value);
    if (unmet.empty()) return {};
    return view_.corrupt(string.position, text("in {}.{} {}", table_->name, field_->name, unmet),
                         quote(value));
  }
  Result<void> inline_vector(const VectorView& vector, const FieldType& field) {
    const std::uint64_t size = std::uint64_t{vector.count} * field.width;
    use(vector.position, kCountSize + size);
    if (met_ && !met_->unaligned && vector.count > 0 && vector.elements() % field.natural_alignment != 0) {
      met_->unaligned = view_.corrupt(
          vector.position, text("a vector whose elements lie at a multiple of {}", field.natural_alignment),
          text("elements at {}", vector.elements()));
    }
    // Bytes are payloads, which hardly anybody walks through.
    return budget_.reach(vector.position, kCountSize + (field.width == 1 && !checks_.walks_bytes ? 0 : size));
  }

 private:
  void use(std::uint64_t begin, std::uint64_t size) {
    if (!met_) return;
    met_->end = std::max(met_->end, begin + size);
    if (met_->keeps_extents) met_->extents.push_back({begin, begin + size});
  }

  Result<void> look_through_vtable(const TableView& table, const TableType& declared) {
    if (!met_->vtables.insert({table.vtable, &declared}).second) return {};
    ETSTREAM_TRY(reach(table.vtable, table.vtable_size));
    for (std::uint64_t slot = kVtableHeader + 2 * declared.fields.size();
         !met_->unknown && slot + 2 <= table.vtable_size; slot += 2) {
      ETSTREAM_ASSIGN(const std::uint64_t offset, view_.read_bits(table.vtable + slot, 2));
      if (offset == 0) continue;
      met_->unknown = view_.corrupt(
          table.vtable + slot,
          text("the {} fields of {} that the schema has", declared.fields.size(), declared.name),
          text("field {}, which is not read", (slot - kVtableHeader) / 2));
    }
    return {};
  }

  const FlatbufferView& view_;
  const FlatbufferChecks checks_;
  Met* met_;
  const TableType* table_ = nullptr;  // of field_
  const FieldType* field_ = nullptr;  // that the walk is in
  FileBudget budget_;                 // shared with later walks
};

/// Returns the first of `extents`, in order, that overlaps another, unless both are one object that is
/// shared.
std::optional<Error> find_overlap(const FlatbufferView& view, const std::vector<UsedRange>& extents) {
  UsedRange last;
  for (const UsedRange& extent : extents) {
    if (extent == last) continue;
    if (extent.begin < last.end) {
      return view.corrupt(extent.begin,
                          text("nothing before offset {}, where what is at {} ends", last.end, last.begin),
                          "another object");
    }
    last = extent;
  }
  return std::nullopt;
}

/// Returns the first byte that is not zero and lies in none of `extents`, which are in order.
Result<std::optional<Error>> find_stray_byte(const FlatbufferView& view, std::vector<UsedRange> extents) {
  extents.push_back({view.file().size(), view.file().size()});
  std::uint64_t end = 0;
  for (const UsedRange& extent : extents) {
    ETSTREAM_ASSIGN(const auto found, view.find_nonzero(end, extent.begin));
    if (found) {
      return std::optional(
          view.corrupt(found->offset, "zero, in the padding between objects", std::to_string(found->value)));
    }
    end = std::max(end, extent.end);
  }
  return std::optional<Error>();
}

}  // namespace

Result<void> verify_flatbuffer(const FlatbufferView& view, const FlatbufferChecks& checks) {
  return without_exceptions([&] { return Verification(view, checks, nullptr).run(); });
}

Result<std::optional<Error>> find_unknown_field(const FlatbufferView& view) {
  return without_exceptions([&]() -> Result<std::optional<Error>> {
    Met met;
    ETSTREAM_TRY(Verification(view, {}, &met).run());
    return std::move(met.unknown);
  });
}

Result<std::uint64_t> end_of_objects(const FlatbufferView& view) {
  return without_exceptions([&]() -> Result<std::uint64_t> {
    Met met;
    ETSTREAM_TRY(Verification(view, {}, &met).run());
    return met.end;
  });
}

Result<std::vector<Error>> find_flaws_of_layout(const FlatbufferView& view,
                                                const std::vector<UsedRange>& also_used) {
  return without_exceptions([&]() -> Result<std::vector<Error>> {
    Met met;
    met.keeps_extents = true;
    met.extents = also_used;
    ETSTREAM_TRY(Verification(view, {}, &met).run());
    std::vector<Error> flaws;
    const auto add = [&](std::optional<Error> flaw) {
      if (flaw) flaws.push_back(std::move(*flaw));
    };
    const std::uint64_t size = view.file().size();
    if (size % kOffsetSize != 0) {
      add(view.corrupt(size, text("an end at a multiple of {}, as builders align it", kOffsetSize),
                       counted(size, "byte")));
    }
    add(std::move(met.unaligned));
    std::ranges::sort(met.extents, {},
                      [](const UsedRange& extent) { return std::pair(extent.begin, extent.end); });
    add(find_overlap(view, met.extents));
    if (met.unknown) {
      add(std::move(met.unknown));  // and what it leads to is no padding
    } else {
      ETSTREAM_ASSIGN(auto stray, find_stray_byte(view, std::move(met.extents)));
      add(std::move(stray));
    }
    return flaws;
  });
}

}  // namespace etstream
