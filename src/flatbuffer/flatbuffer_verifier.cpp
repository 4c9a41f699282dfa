// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/flatbuffer_verifier.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/flatbuffer_walk.h"
#include "io/file_budget.h"

namespace etstream {
namespace {

/// What a walk meets, for checks of more than safe reading.
struct Met {
  bool keeps_extents = false;
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
  Result<void> inline_vector(const VectorView& vector, const FieldType& field) {
    const std::uint64_t size = std::uint64_t{vector.count} * field.width;
    use(vector.position, kCountSize + size);
    see_alignment(vector, field.natural_alignment);
    // Bytes are payloads, which hardly anybody walks through.
    return budget_.reach(vector.position, kCountSize + (field.width == 1 && !checks_.walks_bytes ? 0 : size));
  }

 private:
  void use(std::uint64_t begin, std::uint64_t size) {
    if (met_ && met_->keeps_extents) met_->extents.push_back({begin, begin + size});
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

  /// `vector` has elements that are read `alignment` bytes at once.
  void see_alignment(const VectorView& vector, std::uint64_t alignment) {
    if (!met_ || met_->unaligned || vector.count == 0 || vector.elements() % alignment == 0) return;
    met_->unaligned =
        view_.corrupt(vector.position, text("a vector whose elements lie at a multiple of {}", alignment),
                      text("elements at {}", vector.elements()));
  }

  const FlatbufferView& view_;
  const FlatbufferChecks checks_;
  Met* met_;
  FileBudget budget_;  // shared with later walks
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
  [[nodiscard]] std::optional<Error> overlap() const {
    UsedRange last;
    for (const UsedRange& extent : extents_) {
      if (extent.begin == last.begin && extent.end == last.end) continue;
      if (extent.begin < last.end) {
        return view_.corrupt(extent.begin,
                             text("nothing before offset {}, where what is at {} ends", last.end, last.begin),
                             "another object");
      }
      last = extent;
    }
    return {};
  }

  /// The first byte that is not zero and no object's.
  [[nodiscard]] Result<std::optional<Error>> nonzero() const {
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
  [[nodiscard]] Result<std::optional<Error>> nonzero_in(std::uint64_t begin, std::uint64_t end) const {
    if (begin >= end) return std::optional<Error>();
    ETSTREAM_ASSIGN(const auto found, view_.find_nonzero(begin, end));
    if (!found) return std::optional<Error>();
    return std::optional(
        view_.corrupt(found->offset, "zero, in the padding between objects", std::to_string(found->value)));
  }

  const FlatbufferView& view_;
  std::vector<UsedRange> extents_;
};

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
