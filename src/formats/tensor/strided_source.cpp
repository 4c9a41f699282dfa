// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/strided_source.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

constexpr std::uint64_t kGatheredAtOnce = std::uint64_t{2} << 20;  // of elements that are gathered at once
constexpr std::uint64_t kReadBlock = std::uint64_t{1} << 20;       // read from the source at once
constexpr std::uint64_t kReadCost = 4096;  // a read takes as long as that many bytes of it
constexpr std::uint64_t kDropped = std::uint64_t{256} << 10;
constexpr std::size_t kMostSizes = 64;
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// A dimension of a range of elements, with the distances in bytes between its elements in two places.
struct Axis {
  std::uint64_t size = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

std::uint64_t magnitude(std::int64_t stride) noexcept {
  return stride < 0 ? ~static_cast<std::uint64_t>(stride) + 1 : static_cast<std::uint64_t>(stride);
}

std::uint64_t moved(std::uint64_t offset, std::int64_t by) noexcept {
  return offset + static_cast<std::uint64_t>(by);  // modulo 2^64: the caller knows that it is in range
}

/// Returns the distance in bytes from the first to the last of an axis's elements.
std::uint64_t reach(const Axis& axis) noexcept { return (axis.size - 1) * magnitude(axis.from); }

template <std::size_t kItem>
void copy_items(const std::byte* from, std::byte* to, const Axis& axis) {
  for (std::uint64_t i = 0; i < axis.size; ++i, from += axis.from, to += axis.to) {
    std::memcpy(to, from, kItem);
  }
}

/// Copies elements of `item` bytes from one place to another.
void copy_elements(const std::byte* from, std::byte* to, std::span<const Axis> axes, std::size_t item) {
  if (axes.empty()) {
    std::memcpy(to, from, item);
    return;
  }
  const Axis& outer = axes.back();
  if (axes.size() > 1) {
    for (std::uint64_t i = 0; i < outer.size; ++i, from += outer.from, to += outer.to) {
      copy_elements(from, to, axes.first(axes.size() - 1), item);
    }
    return;
  }
  const auto dense = static_cast<std::int64_t>(item);
  if (outer.from == dense && outer.to == dense) {
    std::memcpy(to, from, static_cast<std::size_t>(outer.size) * item);
    return;
  }
  switch (item) {
    case 1:
      return copy_items<1>(from, to, outer);
    case 2:
      return copy_items<2>(from, to, outer);
    case 4:
      return copy_items<4>(from, to, outer);
    case 8:
      return copy_items<8>(from, to, outer);
    case 16:
      return copy_items<16>(from, to, outer);
    default:
      break;
  }
  for (std::uint64_t i = 0; i < outer.size; ++i, from += outer.from, to += outer.to) {
    std::memcpy(to, from, item);
  }
}

/// A part of a window whose elements are near each other in the source, so that one read gets them.
struct ReadBlock {
  std::vector<Axis> axes;   // innermost in the source first
  std::uint64_t span = 0;   // in bytes, from its first element in the source to the end of its last one
  std::uint64_t items = 1;  // how many elements it has
};

/// Returns the block of the cheapest shape at the beginning of `axes`, which are innermost in the source
/// first.
ReadBlock cheapest_block(std::span<const Axis> axes, std::uint64_t item) {
  ReadBlock block{{}, item, 1};
  for (const Axis& axis : axes) {
    const std::uint64_t step = magnitude(axis.from);
    const std::uint64_t room = kReadBlock > block.span ? kReadBlock - block.span : 0;
    const std::uint64_t count = step == 0 ? axis.size : std::min(axis.size, room / step + 1);
    const std::uint64_t span = block.span + (count - 1) * step;
    if ((kReadCost + span) / count > kReadCost + block.span) break;
    block.axes.push_back({count, axis.from, axis.to});
    block.span = span;
    block.items *= count;
    if (count < axis.size) break;
  }
  return block;
}

/// Resizes the block to `count` elements along its last axis.
void resize_last(ReadBlock& block, std::uint64_t count) noexcept {
  Axis& axis = block.axes.back();
  block.span -= reach(axis);
  block.items = block.items / axis.size * count;
  axis.size = count;
  block.span += reach(axis);
}

/// The window that was gathered last: a caller that reads in small steps needs it again.
class KeptWindow {
 public:
  /// Copies a part of a source's window, if that window is the one that is kept. Returns whether it is.
  bool copy(std::uint64_t owner, std::uint64_t window, std::uint64_t offset, std::span<std::byte> out) {
    const std::scoped_lock lock(mutex_);
    if (owner != owner_ || window != window_) return false;
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }
  void keep(std::uint64_t owner, std::uint64_t window, std::vector<std::byte> bytes) {
    const std::scoped_lock lock(mutex_);
    owner_ = owner;
    window_ = window;
    bytes_ = std::move(bytes);
  }
  void forget(std::uint64_t owner) {
    const std::scoped_lock lock(mutex_);
    if (owner == owner_) std::vector<std::byte>().swap(bytes_);
  }

 private:
  std::mutex mutex_;
  std::uint64_t owner_ = 0;
  std::uint64_t window_ = 0;
  std::vector<std::byte> bytes_;
};

/// Returns the same object until the process ends: a source may outlive static objects.
KeptWindow& kept_window() {
  static KeptWindow& kept = *new KeptWindow;  // NOLINT(cppcoreguidelines-owning-memory)
  return kept;
}

/// Leaves out dimensions of one element, and joins dimensions that lie as one. `from` is the distance in the
/// source, and `to` the distance when elements follow one another.
std::vector<Axis> joined_axes(const StridedElements& elements) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < elements.sizes.size(); ++i) {
    const std::uint64_t size = elements.sizes[i];
    const std::int64_t stride = elements.strides[i];
    if (size == 1) continue;
    const bool joins = !axes.empty() && magnitude(stride) <= kLargest / size &&
                       axes.back().from == stride * static_cast<std::int64_t>(size);
    if (joins) {
      axes.back().size *= size;
      axes.back().from = stride;
    } else {
      axes.push_back({size, stride, 0});
    }
  }
  auto step = static_cast<std::int64_t>(elements.item_size);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    axis->to = step;
    step *= static_cast<std::int64_t>(axis->size);
  }
  return axes;
}

/// Gathers the elements of `source` by windows. Each window has `rows_` indices of one axis, and all indices
/// of the axes inside it. The last window of each row of windows may have fewer.
class GatheredElements final : public DerivedStorage {
 public:
  GatheredElements(ByteSource source, StridedElements elements, std::vector<Axis> axes, std::uint64_t size)
      : source_(std::move(source)), elements_(std::move(elements)), axes_(std::move(axes)), size_(size) {
    // The elements of the last axis are smaller.
    while (static_cast<std::uint64_t>(axes_[split_].to) > kGatheredAtOnce) ++split_;
    row_ = static_cast<std::uint64_t>(axes_[split_].to);
    rows_ = std::min(axes_[split_].size, kGatheredAtOnce / row_);
  }
  ~GatheredElements() override { kept_window().forget(id_); }

  const ByteSource& source() const noexcept { return source_; }
  const StridedElements& elements() const noexcept { return elements_; }

  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return source_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(source_); }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const Window window = window_at(offset);
      const std::uint64_t skip = offset - window.begin;
      const auto part =
          out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), window.size - skip)));
      if (part.size() == window.size) {
        ETSTREAM_TRY(fill(window, part));
      } else if (!kept_window().copy(id_, window.begin, skip, part)) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(window.size));
        ETSTREAM_TRY(fill(window, bytes));
        std::memcpy(part.data(), bytes.data() + skip, part.size());
        kept_window().keep(id_, window.begin, std::move(bytes));
      }
      offset += part.size();
      out = out.subspan(part.size());
    }
    return {};
  }

  /// Drops the pages that the windows which end in the range were gathered from, if those are large pieces
  /// that no other window needs. At the end, drops everything.
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    const std::uint64_t end = offset + size;
    if (end == size_) return source_.drop_pages(0, source_.size());
    static_cast<void>(without_exceptions([&]() -> Result<void> {
      for (Window window = window_at(offset); window.begin + window.size <= end;
           window = window_at(window.begin + window.size)) {
        ETSTREAM_TRY(visit_blocks(window, [&](const ReadBlock& block, std::uint64_t at, std::uint64_t) {
          const bool whole = block.span / 2 <= block.items * elements_.item_size;
          if (whole && block.span >= kDropped) source_.drop_pages(at, block.span);
          return Result<void>();
        }));
      }
      return {};
    }));
  }

 private:
  struct Window {
    std::uint64_t begin = 0;  // in the elements as they are gathered, in bytes; so is its size
    std::uint64_t size = 0;
    std::uint64_t rows = 0;    // indices of the axis that is divided
    std::uint64_t source = 0;  // offset of its first element there
  };

  /// Returns the window that has the byte at `offset`.
  Window window_at(std::uint64_t offset) const noexcept {
    const std::uint64_t all_rows = axes_[split_].size;
    const std::uint64_t outer = offset / (row_ * all_rows);
    const std::uint64_t inner = offset / row_ % all_rows / rows_;
    Window window;
    window.begin = (outer * all_rows + inner * rows_) * row_;
    window.rows = std::min(rows_, all_rows - inner * rows_);
    window.size = window.rows * row_;
    window.source = elements_.offset;
    std::uint64_t rest = window.begin / row_;  // an index among all rows
    for (std::size_t i = split_ + 1; i-- > 0; rest /= axes_[i].size) {
      const auto index = static_cast<std::int64_t>(rest % axes_[i].size);
      window.source = moved(window.source, index * axes_[i].from);
    }
    return window;
  }

  /// Calls `see(block, offset of its first byte in the source, offset of its first element in the window)`
  /// for each block of a window.
  template <class See>
  Result<void> visit_blocks(const Window& window, See see) const {
    std::vector<Axis> axes(axes_.begin() + static_cast<std::ptrdiff_t>(split_), axes_.end());
    axes.front().size = window.rows;
    std::erase_if(axes, [](const Axis& axis) { return axis.size == 1; });
    // Along an axis with a negative stride, the last element comes first.
    std::uint64_t source = window.source;
    std::uint64_t place = 0;
    for (Axis& axis : axes) {
      if (axis.from >= 0) continue;
      source -= reach(axis);
      place += (axis.size - 1) * static_cast<std::uint64_t>(axis.to);
      axis.from = -axis.from;
      axis.to = -axis.to;
    }
    std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.from < b.from; });
    ReadBlock block = cheapest_block(axes, elements_.item_size);
    const std::size_t shared = block.axes.size();
    const std::uint64_t step = shared == 0 ? 1 : block.axes.back().size;
    // The first axis of which blocks have only a part. It may be the last axis that they have.
    const bool divides = shared > 0 && step < axes[shared - 1].size;
    const std::size_t first = divides ? shared - 1 : shared;
    std::array<std::uint64_t, kMostSizes> index{};
    while (true) {
      if (divides) resize_last(block, std::min(step, axes[first].size - index[first]));
      ETSTREAM_TRY(see(std::as_const(block), source, place));
      std::size_t i = first;
      for (; i < axes.size(); ++i) {
        const std::uint64_t steps = divides && i == first ? block.axes.back().size : 1;
        index[i] += steps;
        source = moved(source, static_cast<std::int64_t>(steps) * axes[i].from);
        place = moved(place, static_cast<std::int64_t>(steps) * axes[i].to);
        if (index[i] < axes[i].size) break;
        source = moved(source, -static_cast<std::int64_t>(axes[i].size) * axes[i].from);
        place = moved(place, -static_cast<std::int64_t>(axes[i].size) * axes[i].to);
        index[i] = 0;
      }
      if (i == axes.size()) return {};
    }
  }

  /// Gathers the elements of a window.
  Result<void> fill(const Window& window, std::span<std::byte> out) const {
    std::vector<std::byte> bytes;
    return visit_blocks(
        window, [&](const ReadBlock& block, std::uint64_t source, std::uint64_t place) -> Result<void> {
          if (bytes.size() < block.span) bytes.resize(static_cast<std::size_t>(block.span));
          const auto read = std::span(bytes).first(static_cast<std::size_t>(block.span));
          ETSTREAM_TRY(source_.read_at(source, read));
          copy_elements(read.data(), out.data() + place, block.axes,
                        static_cast<std::size_t>(elements_.item_size));
          return {};
        });
  }

  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  const std::uint64_t id_ = next_id();
  const ByteSource source_;
  const StridedElements elements_;
  const std::vector<Axis> axes_;  // outermost first; there is at least one
  const std::uint64_t size_;
  std::size_t split_ = 0;  // the axis that windows divide; they have all of those inside it
  std::uint64_t row_ = 0;  // bytes of one index of it
  std::uint64_t rows_ = 0;
};

/// Returns the byte size of all elements. Errors: see gather().
Result<std::uint64_t> checked_size(const ByteSource& source, const StridedElements& elements) {
  const auto refuse = [&](ErrorCode code, std::string_view why) {
    return error_in(code, source.name(), "elements of {} bytes in {} dimensions {}", elements.item_size,
                    elements.sizes.size(), why);
  };
  if (elements.item_size == 0 || elements.item_size > 16 || elements.sizes.size() > kMostSizes ||
      elements.sizes.size() != elements.strides.size()) {
    return refuse(ErrorCode::kInvalidArgument,
                  "are not 1 to 16 bytes each, with a stride for each of at most 64 dimensions");
  }
  const bool empty = std::find(elements.sizes.begin(), elements.sizes.end(), 0) != elements.sizes.end();
  if (empty) return std::uint64_t{0};
  std::uint64_t size = elements.item_size;
  std::optional<std::uint64_t> before = 0;
  std::optional<std::uint64_t> behind = elements.item_size;
  for (std::size_t i = 0; i < elements.sizes.size(); ++i) {
    const auto next = checked_multiply(size, elements.sizes[i]);
    if (!next || *next > kLargest) return refuse(ErrorCode::kTooLarge, "take 2^63 bytes or more");
    size = *next;
    const auto far = checked_multiply(elements.sizes[i] - 1, magnitude(elements.strides[i]));
    std::optional<std::uint64_t>& end = elements.strides[i] < 0 ? before : behind;
    end = far && end ? checked_add(*end, *far) : std::nullopt;
  }
  const bool inside = before && behind && source.size() <= kLargest && *before <= elements.offset &&
                      range_fits(elements.offset, *behind, source.size());
  if (inside) return size;
  return refuse(ErrorCode::kInvalidArgument,
                text("from offset {} on are not all inside its {} bytes", elements.offset, source.size()));
}

/// Returns the places of elements that are gathered twice, if `outer`, which has as many bytes as `inner` and
/// is inside it, is an order of all its dimensions.
std::optional<StridedElements> reordered(const StridedElements& inner, const StridedElements& outer) {
  if (inner.item_size != outer.item_size) return std::nullopt;
  const auto dense = dense_strides(inner.sizes, inner.item_size);
  std::vector<bool> taken(dense.size());
  StridedElements out{inner.item_size, outer.sizes, std::vector<std::int64_t>(outer.sizes.size()),
                      inner.offset};
  for (std::size_t i = 0; i < outer.sizes.size(); ++i) {
    if (outer.sizes[i] == 1) continue;
    std::size_t same = 0;
    while (same < dense.size() &&
           (taken[same] || inner.sizes[same] != outer.sizes[i] || dense[same] != outer.strides[i])) {
      ++same;
    }
    if (same == dense.size()) return std::nullopt;
    taken[same] = true;
    out.strides[i] = inner.strides[same];
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> dense_strides(const std::vector<std::uint64_t>& sizes, std::uint64_t item_size) {
  std::vector<std::int64_t> strides(sizes.size());
  auto step = static_cast<std::int64_t>(item_size);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= static_cast<std::int64_t>(sizes[i]);
  }
  return strides;
}

Result<ByteSource> gather(ByteSource source, StridedElements elements) {
  return without_exceptions([&]() -> Result<ByteSource> {
    ETSTREAM_ASSIGN(const std::uint64_t size, checked_size(source, elements));
    if (size == 0) return source.slice(0, 0);
    const auto* gathered = dynamic_cast<const GatheredElements*>(source.place().storage);
    if (gathered != nullptr && source.size() == gathered->size() && size == source.size()) {
      if (auto again = reordered(gathered->elements(), elements)) {
        return gather(gathered->source(), *std::move(again));
      }
    }
    auto axes = joined_axes(elements);
    const bool dense =
        std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.from == axis.to; });
    if (dense) return source.slice(elements.offset, size);
    return ByteSource(
        std::make_shared<GatheredElements>(std::move(source), std::move(elements), std::move(axes), size));
  });
}

}  // namespace etstream
