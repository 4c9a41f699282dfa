// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/vector_alignment.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/flatbuffer_view.h"
#include "layout/backward_builder.h"

namespace etstream {
namespace {

/// Distances between objects, and the vectors that want more alignment.
class Objects {
 public:
  /// A number of 4 bytes at `at`, which says where `target` is: behind it, or for tables, where their vtable
  /// is.
  struct Link {
    std::uint64_t at = 0;
    std::uint64_t target = 0;
  };
  struct Vector {
    std::uint64_t begin = 0;  // of its elements
    std::uint64_t end = 0;
    std::uint32_t alignment = 1;
  };

  Objects(const FlatbufferView& view, std::uint32_t limit) : view_(view), limit_(limit) {}

  Result<void> collect() {
    ETSTREAM_ASSIGN(const TableView root, view_.root());
    links_.push_back({0, root.position});
    return collect(root, view_.schema().root_index(), 1);
  }

  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const std::vector<Link>& vtables() const { return vtables_; }
  /// In the order in which they were built, the last of the file first.
  [[nodiscard]] std::vector<Vector> vectors() const {
    std::vector<Vector> out = vectors_;
    std::sort(out.begin(), out.end(), [](const Vector& a, const Vector& b) { return a.begin > b.begin; });
    return out;
  }

 private:
  Result<void> collect(const TableView& table, std::size_t type, int depth) {
    const TableType& declared = view_.schema().tables()[type];
    if (depth > kDeepestTable) {
      return view_.corrupt(table.position, text("tables nested at most ", kDeepestTable, " deep"),
                           declared.name);
    }
    vtables_.push_back({table.position, table.vtable});
    for (const FieldType& field : declared.fields) ETSTREAM_TRY(collect_field(table, declared, field, depth));
    return {};
  }

  Result<void> collect_field(const TableView& table, const TableType& declared, const FieldType& field,
                             int depth) {
    ETSTREAM_ASSIGN(const auto position, view_.find(table, field));
    if (!position) return {};
    switch (field.kind) {
      case FieldKind::kScalar:
      case FieldKind::kStruct:
      case FieldKind::kUnionType:
        return {};
      case FieldKind::kTable: {
        ETSTREAM_ASSIGN(const auto child, view_.child(table, field));
        links_.push_back({*position, child->position});
        return collect(*child, field.type, depth + 1);
      }
      case FieldKind::kUnion: {
        ETSTREAM_ASSIGN(const auto member, view_.member(table, declared, field));
        return collect_member(*position, *member, depth);
      }
      default: {
        ETSTREAM_ASSIGN(const auto vector, view_.vector(table, field));
        links_.push_back({*position, vector->position});
        return collect_elements(table, declared, field, *vector, depth);
      }
    }
  }

  Result<void> collect_member(std::uint64_t at, const MemberView& member, int depth) {
    links_.push_back({at, member.position});
    if (member.type->kind != FieldKind::kTable) return {};
    ETSTREAM_ASSIGN(const TableView table, view_.table(member.position));
    return collect(table, member.type->type, depth + 1);
  }

  Result<void> collect_elements(const TableView& table, const TableType& declared, const FieldType& field,
                                const VectorView& vector, int depth) {
    if (field.kind == FieldKind::kInlineVector && field.alignment > limit_ && vector.count > 0) {
      const std::uint64_t size = std::uint64_t{vector.count} * field.width;
      vectors_.push_back({vector.elements(), vector.elements() + size, field.alignment});
    }
    for (std::uint64_t i = 0; i < vector.count; ++i) {
      const std::uint64_t at = vector.elements() + i * kOffsetSize;
      if (field.kind == FieldKind::kTableVector) {
        ETSTREAM_ASSIGN(const TableView child, view_.table_at(vector, i));
        links_.push_back({at, child.position});
        ETSTREAM_TRY(collect(child, field.type, depth + 1));
      } else if (field.kind == FieldKind::kStringVector) {
        ETSTREAM_ASSIGN(const VectorView string, view_.string_at(vector, i));
        links_.push_back({at, string.position});
      } else if (field.kind == FieldKind::kUnionVector) {
        ETSTREAM_ASSIGN(const auto types, view_.vector(table, declared.fields[std::size_t{field.id} - 1]));
        ETSTREAM_ASSIGN(const auto member, view_.member_at(declared, field, *types, vector, i));
        if (member) ETSTREAM_TRY(collect_member(at, *member, depth));
      } else {
        return {};
      }
    }
    return {};
  }

  const FlatbufferView& view_;
  const std::uint32_t limit_;
  std::vector<Link> links_;
  std::vector<Link> vtables_;
  std::vector<Vector> vectors_;
};

/// Zeros put between objects.
class Padding {
 public:
  /// Pads as a builder does, which begins at the end of `size` bytes: behind each of the vectors, and at last
  /// behind the header.
  Padding(std::uint64_t size, std::uint64_t header, const std::vector<Objects::Vector>& vectors) {
    std::uint64_t largest = 1;
    for (const Objects::Vector& vector : vectors) {
      put(vector.end, padding_to(size - vector.begin + total_, vector.alignment));
      largest = std::max<std::uint64_t>(largest, vector.alignment);
    }
    put(header, padding_to(size + total_, largest));
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Where what was at `position` is now.
  [[nodiscard]] std::uint64_t moved(std::uint64_t position) const {
    // The zeros put at or behind the first that lies behind `position` do not move it.
    const auto behind = std::partition_point(pieces_.begin(), pieces_.end(),
                                             [&](const Piece& piece) { return piece.at > position; });
    return position + total_ - (behind == pieces_.begin() ? 0 : std::prev(behind)->so_far);
  }
  /// `bytes` with the zeros between them.
  [[nodiscard]] std::vector<std::byte> apply(const std::vector<std::byte>& bytes) const {
    std::vector<std::byte> out(bytes.size() + total_);
    std::uint64_t end = bytes.size();
    for (const Piece& piece : pieces_) {
      copy(bytes, piece.at, end, out);
      end = piece.at;
    }
    copy(bytes, 0, end, out);
    return out;
  }

 private:
  struct Piece {
    std::uint64_t at = 0;
    std::uint64_t so_far = 0;  // zeros put here and behind
  };

  void put(std::uint64_t at, std::uint64_t size) {
    total_ += size;
    pieces_.push_back({at, total_});
  }
  void copy(const std::vector<std::byte>& bytes, std::uint64_t begin, std::uint64_t end,
            std::vector<std::byte>& out) const {
    std::memcpy(out.data() + moved(begin), bytes.data() + begin, end - begin);
  }

  std::vector<Piece> pieces_;  // from the end of the file to its beginning
  std::uint64_t total_ = 0;
};

void put_number(std::vector<std::byte>& bytes, std::uint64_t at, std::uint64_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  std::memcpy(bytes.data() + at, &number, sizeof(number));
}

}  // namespace

bool has_alignment_over(const Schema& schema, std::uint32_t limit) {
  return std::any_of(schema.tables().begin(), schema.tables().end(), [&](const TableType& table) {
    return std::any_of(table.fields.begin(), table.fields.end(),
                       [&](const FieldType& field) { return field.alignment > limit; });
  });
}

Result<std::vector<std::byte>> raise_alignments(std::vector<std::byte> flatbuffer, const Schema& schema,
                                                std::uint32_t limit, const std::string& name) {
  ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, ByteSource::memory(flatbuffer), name));
  Objects objects(view, limit);
  ETSTREAM_TRY(objects.collect());
  const auto vectors = objects.vectors();
  if (vectors.empty()) return flatbuffer;
  const Padding padding(flatbuffer.size(), kOffsetSize + schema.identifier().size(), vectors);
  if (flatbuffer.size() + padding.total() > kLargestFlatbuffer) {
    return make_error(ErrorCode::kTooLarge, name, ": its flatbuffer would have ",
                      readable_size(flatbuffer.size() + padding.total()), ", at most ",
                      readable_size(kLargestFlatbuffer), " are possible");
  }
  std::vector<std::byte> out = padding.apply(flatbuffer);
  for (const auto& [at, target] : objects.links()) {
    put_number(out, padding.moved(at), padding.moved(target) - padding.moved(at));
  }
  for (const auto& [table, vtable] : objects.vtables()) {
    put_number(out, padding.moved(table), padding.moved(table) - padding.moved(vtable));
  }
  return out;
}

}  // namespace etstream
