// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/backward_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"

namespace etstream {
namespace {

static_assert(std::endian::native == std::endian::little, "values are placed as they lie in memory");

constexpr unsigned kUoffsetSize = 4;  // of uoffset_t and soffset_t, and of a vector's length
constexpr unsigned kVoffsetSize = 2;  // of an entry of a vtable
constexpr std::uint64_t kLongestZerosInMemory = 4096;
constexpr std::string_view kMetadataLabel = "metadata";

/// Returns the content of a vtable without the size of its table.
std::string without_size(std::string vtable) {
  vtable.erase(kVoffsetSize, kVoffsetSize);
  return vtable;
}

}  // namespace

/// A piece of memory that fills from its end, and then serves as storage for the chunks in it.
class BackwardBuilder::Block final : public ByteStorage {
 public:
  static constexpr std::size_t kSize = std::size_t{64} << 10;

  Block() : bytes_(std::make_unique_for_overwrite<std::byte[]>(kSize)) {}

  std::uint64_t size() const noexcept override { return kSize; }
  std::string name() const override { return "metadata"; }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.get() + offset, out.size());
    return {};
  }

  /// Places as much of the end of `bytes` as there is room for, and says how much that was.
  std::size_t place(std::span<const std::byte> bytes) {
    const std::size_t n = std::min(bytes.size(), head_);
    head_ -= n;
    std::memcpy(bytes_.get() + head_, bytes.data() + (bytes.size() - n), n);
    return n;
  }

  /// Returns the offset and the size of the bytes since the last call.
  std::pair<std::size_t, std::size_t> close_chunk() {
    return {head_, std::exchange(chunk_end_, head_) - head_};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t head_ = kSize;
  std::size_t chunk_end_ = kSize;
};

BackwardBuilder::BackwardBuilder(EmptyVectors empty_vectors, VtableSharing vtables)
    : empty_vectors_(empty_vectors), vtable_sharing_(vtables) {}
BackwardBuilder::~BackwardBuilder() = default;

BackwardBuilder::Ref BackwardBuilder::add_string(std::string_view string) {
  align(kUoffsetSize, string.size() + 1);
  place_zeros(1);
  place(std::as_bytes(std::span(string)));
  return end_vector(string.size());
}

BackwardBuilder::Ref BackwardBuilder::add_vector(std::span<const std::byte> elements,
                                                 std::uint32_t element_size, std::uint32_t alignment) {
  begin_vector(elements.size(), alignment);
  place(elements);
  return end_vector(elements.size() / element_size);
}

BackwardBuilder::Ref BackwardBuilder::add_vector(ByteSource elements, std::uint32_t element_size,
                                                 std::uint32_t alignment, std::string_view label) {
  const std::uint64_t bytes = elements.size();
  begin_vector(bytes, alignment);
  place_hole(std::move(elements), alignment, label);
  return end_vector(bytes / element_size);
}

BackwardBuilder::Ref BackwardBuilder::add_vector(std::span<const Ref> elements) {
  begin_vector(elements.size() * kUoffsetSize, kUoffsetSize);
  for (auto element = elements.rbegin(); element != elements.rend(); ++element) {
    place_distance_to(element->from_end);
  }
  return end_vector(elements.size());
}

BackwardBuilder::Ref BackwardBuilder::add_struct(std::span<const std::byte> bytes, std::uint32_t alignment) {
  align(alignment, bytes.size());
  place(bytes);
  return Ref{size()};
}

void BackwardBuilder::begin_vector(std::uint64_t bytes, std::uint32_t alignment) {
  assert(is_power_of_two(alignment));
  if (bytes == 0 && empty_vectors_ == EmptyVectors::kAsTheyCome) {
    align(kUoffsetSize, 0);
    return;
  }
  align(kUoffsetSize, bytes);
  align(alignment, bytes);
}

BackwardBuilder::Ref BackwardBuilder::end_vector(std::uint64_t count) {
  place_bits(count, kUoffsetSize);
  return Ref{size()};
}

void BackwardBuilder::begin_table() {
  table_end_ = size();
  fields_.clear();
}

void BackwardBuilder::add_scalar(std::uint16_t id, std::uint64_t bits, unsigned width) {
  align(width, 0);
  place_bits(bits, width);
  fields_.push_back({id, size()});
}

void BackwardBuilder::add_struct(std::uint16_t id, std::span<const std::byte> bytes,
                                 std::uint32_t alignment) {
  fields_.push_back({id, add_struct(bytes, alignment).from_end});
}

void BackwardBuilder::add_ref(std::uint16_t id, Ref object) {
  align(kUoffsetSize, 0);
  place_distance_to(object.from_end);
  fields_.push_back({id, size()});
}

BackwardBuilder::Ref BackwardBuilder::end_table() {
  align(kUoffsetSize, 0);
  const std::uint64_t table = size() + kUoffsetSize;
  const std::string content = vtable(table);
  // A new vtable goes right before its table; an equal one that is there already is shared.
  const bool by_size = vtable_sharing_ == VtableSharing::kOfEqualSize;
  const auto [shared, is_new] =
      vtables_.try_emplace(by_size ? content : without_size(content), table + content.size());
  place_bits(shared->second - table, kUoffsetSize);
  if (is_new) place(std::as_bytes(std::span(content)));
  return Ref{table};
}

/// Returns the vtable of the open table: its own size, the table's size, and each field's offset in the
/// table. An absent field has offset 0, and absent fields at the end are left out.
std::string BackwardBuilder::vtable(std::uint64_t table_from_end) {
  std::size_t slots = 0;
  for (const auto& field : fields_) slots = std::max<std::size_t>(slots, field.id + std::size_t{1});
  std::vector<std::uint16_t> entries(2 + slots);
  const std::uint64_t table_size = table_from_end - table_end_;
  constexpr std::size_t kLargest = std::numeric_limits<std::uint16_t>::max();
  if (table_size > kLargest || entries.size() * kVoffsetSize > kLargest) table_too_large_ = true;
  entries[0] = static_cast<std::uint16_t>(entries.size() * kVoffsetSize);
  entries[1] = static_cast<std::uint16_t>(table_size);
  for (const auto& field : fields_) {
    entries[2 + field.id] = static_cast<std::uint16_t>(table_from_end - field.from_end);
  }
  return {reinterpret_cast<const char*>(entries.data()), entries.size() * kVoffsetSize};
}

Result<FilePlan> BackwardBuilder::finish(Ref root, std::string_view identifier, std::uint64_t limit,
                                         std::uint32_t header_size) {
  assert(identifier.empty() || identifier.size() == 4);
  align(largest_alignment_, kUoffsetSize + identifier.size() + header_size);
  place_hole(ByteSource::zeros(header_size), 1, "header");
  plan_.metadata_size += header_size;
  place(std::as_bytes(std::span(identifier)));
  align(kUoffsetSize, 0);
  place_distance_to(root.from_end);
  close_chunk();
  limit = std::min(limit, kLargestFlatbuffer);
  if (overflow_ || size() > limit) {
    return make_error(ErrorCode::kTooLarge, "the file would be {} bytes, and its format ends at {} bytes",
                      overflow_ ? "over 2^64 - 1" : std::to_string(size()), limit);
  }
  if (table_too_large_) {
    return make_error(ErrorCode::kTooLarge, "a table is larger than the 65535 bytes that it can have");
  }
  plan_.payload_size = size() - plan_.metadata_size;
  std::uint64_t offset = 0;
  for (Extent& extent : plan_.extents) {
    extent.offset = offset;
    offset += extent.size();
  }
  return std::move(plan_);
}

/// Pads so that the position is a multiple of `alignment` once `upcoming` more bytes are placed.
void BackwardBuilder::align(std::uint64_t alignment, std::uint64_t upcoming) {
  largest_alignment_ = std::max(largest_alignment_, alignment);
  place_zeros(padding_to(size() + upcoming, alignment));
}

void BackwardBuilder::place(std::span<const std::byte> bytes) {
  advance(bytes.size());
  plan_.metadata_size += bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = block_ ? block_->place(bytes) : 0;
    if (n == 0) {
      close_chunk();
      block_ = std::make_shared<Block>();
    }
    bytes = bytes.first(bytes.size() - n);
  }
}

void BackwardBuilder::place_bits(std::uint64_t bits, unsigned width) {
  place(std::as_bytes(std::span(&bits, 1)).first(width));
}

/// Places a distance. If it does not fit it is cut here, and finish() refuses the file.
void BackwardBuilder::place_distance_to(std::uint64_t from_end) {
  place_bits(size() + kUoffsetSize - from_end, kUoffsetSize);
}

void BackwardBuilder::place_zeros(std::uint64_t n) {
  static constexpr std::array<std::byte, kLongestZerosInMemory> kZeros{};
  if (n > kZeros.size()) {
    place_hole(ByteSource::zeros(n), 1, "padding");
  } else {
    place(std::span(kZeros).first(static_cast<std::size_t>(n)));
  }
}

void BackwardBuilder::place_hole(ByteSource source, std::uint32_t alignment, std::string_view label) {
  if (source.size() == 0) return;
  close_chunk();
  advance(source.size());
  add_extent(alignment, label, std::move(source));
}

void BackwardBuilder::add_extent(std::uint32_t alignment, std::string_view label, ByteSource source) {
  const auto [number, is_new] =
      label_numbers_.try_emplace(std::string(label), static_cast<std::uint32_t>(plan_.labels.size()));
  if (is_new) plan_.labels.emplace_back(label);
  plan_.extents.push_front({0, alignment, number->second, std::move(source)});
}

void BackwardBuilder::advance(std::uint64_t n) {
  const auto after = checked_add(size(), n);
  overflow_ = overflow_ || !after;
  plan_.size = after.value_or(size());
}

void BackwardBuilder::close_chunk() {
  if (!block_) return;
  const auto [offset, size] = block_->close_chunk();
  if (size > 0) add_extent(1, kMetadataLabel, ByteSource(block_).slice(offset, size).value());
}

}  // namespace etstream
