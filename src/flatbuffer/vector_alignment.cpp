// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/vector_alignment.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/backward_builder.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/flatbuffer_walk.h"

namespace etstream {
namespace {

/// The links between objects, and the vectors that want more alignment.
struct Objects : FlatbufferVisitor {
  /// A number of 4 bytes at `at` that tells the place of `target`: the object behind it, or for tables, their
  /// vtable.
  struct Link {
    std::uint64_t at = 0;
    std::uint64_t target = 0;
  };
  struct Vector {
    std::uint64_t begin = 0;  // of its elements
    std::uint64_t end = 0;
    std::uint32_t alignment = 1;
  };

  Result<void> begin_table(const TableView& table, const TableType& /*declared*/) {
    vtables.push_back({table.position, table.vtable});
    return {};
  }
  void link(std::uint64_t at, std::uint64_t target) { links.push_back({at, target}); }
  Result<void> inline_vector(const VectorView& vector, const FieldType& field) {
    if (field.alignment > kLargestParserAlignment && vector.count > 0) {
      const std::uint64_t size = std::uint64_t{vector.count} * field.width;
      vectors.push_back({vector.elements(), vector.elements() + size, field.alignment});
    }
    return {};
  }

  std::vector<Link> links;
  std::vector<Link> vtables;
  std::vector<Vector> vectors;
};

/// The zeros that are put between objects.
class Padding {
 public:
  /// Pads as a builder does. It begins at the end of `size` bytes, pads behind each of the vectors, and at
  /// last behind the header.
  Padding(std::uint64_t size, std::uint64_t header, const std::vector<Objects::Vector>& vectors) {
    std::uint64_t largest = 1;
    for (const Objects::Vector& vector : vectors) {
      put(vector.end, padding_to(size - vector.begin + total_, vector.alignment));
      largest = std::max<std::uint64_t>(largest, vector.alignment);
    }
    put(header, padding_to(size + total_, largest));
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// Returns the new place of the byte at `position`.
  [[nodiscard]] std::uint64_t moved(std::uint64_t position) const {
    // Only zeros that are put at `position` or before it move it.
    const auto behind = std::partition_point(pieces_.begin(), pieces_.end(),
                                             [&](const Piece& piece) { return piece.at > position; });
    return position + total_ - (behind == pieces_.begin() ? 0 : std::prev(behind)->so_far);
  }
  /// Returns `bytes` with the zeros between them.
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

bool exceeds_parser_alignment(const Schema& schema) {
  return std::ranges::any_of(schema.tables(), [](const TableType& table) {
    return std::ranges::any_of(
        table.fields, [](std::uint32_t alignment) { return alignment > kLargestParserAlignment; },
        &FieldType::alignment);
  });
}

Result<std::vector<std::byte>> raise_alignments(std::vector<std::byte> flatbuffer, const Schema& schema,
                                                const std::string& name) {
  ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, ByteSource::memory(flatbuffer), name));
  Objects objects;
  ETSTREAM_TRY(walk_flatbuffer(view, objects));
  if (objects.vectors.empty()) return flatbuffer;
  // Sorts the vectors in the order in which they were built: the last of the file first.
  std::ranges::sort(objects.vectors, std::greater(), &Objects::Vector::begin);
  const Padding padding(flatbuffer.size(), kOffsetSize + schema.identifier().size(), objects.vectors);
  if (flatbuffer.size() + padding.total() > kLargestFlatbuffer) {
    return error_in(ErrorCode::kTooLarge, name, "its flatbuffer would have {}, at most {} are possible",
                    readable_size(flatbuffer.size() + padding.total()), readable_size(kLargestFlatbuffer));
  }
  std::vector<std::byte> out = padding.apply(flatbuffer);
  for (const auto& [at, target] : objects.links) {
    put_number(out, padding.moved(at), padding.moved(target) - padding.moved(at));
  }
  for (const auto& [table, vtable] : objects.vtables) {
    put_number(out, padding.moved(table), padding.moved(table) - padding.moved(vtable));
  }
  return out;
}

}  // namespace etstream
