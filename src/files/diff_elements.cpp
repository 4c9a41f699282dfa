// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "core/io/derived_storage.h"
#include "files/diff_list.h"

namespace etstream {
namespace {

/// Gives elements of four bits as bytes. A byte has two of them, with the first in the low half.
class UnpackedNibbles final : public DerivedStorage {
 public:
  explicit UnpackedNibbles(ByteSource packed) : packed_(std::move(packed)) {}

  std::uint64_t size() const noexcept override { return 2 * packed_.size(); }
  std::string name() const override { return packed_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(packed_); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::byte, 4096> piece;
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t at = offset + done;
      const std::size_t count = std::min<std::size_t>(out.size() - done, 2 * piece.size() - 1);
      const std::uint64_t first = at / 2;
      const std::span bytes(piece.data(), static_cast<std::size_t>((at + count + 1) / 2 - first));
      ETSTREAM_TRY(packed_.read_at(first, bytes));
      for (std::size_t i = 0; i < count; ++i) {
        const std::byte both = bytes[static_cast<std::size_t>((at + i) / 2 - first)];
        out[done + i] = (at + i) % 2 == 0 ? both & std::byte{15} : both >> 4;
      }
      done += count;
    }
    return {};
  }

 private:
  ByteSource packed_;
};

/// Returns the piece as a tensor whose elements fill its data; nothing if they don't.
std::optional<Tensor> as_tensor(const NamedPiece& piece) {
  if (!piece.layout) return std::nullopt;
  Tensor out{piece.layout->scalar_type, piece.layout->sizes, piece.layout->dim_order, piece.data};
  const auto size = byte_size(out.scalar_type, out.sizes);
  if (!size || *size != piece.data.size()) return std::nullopt;
  if (!piece.is_of_nibbles) return out;
  // The halves of a byte are elements of one more dimension, the innermost.
  out.sizes.push_back(2);
  out.dim_order.push_back(static_cast<std::uint8_t>(out.dim_order.size()));
  out.data = ByteSource(std::make_shared<UnpackedNibbles>(piece.data));
  return out;
}

}  // namespace

Result<std::optional<ElementComparisons::Compared>> ElementComparisons::compare(const NamedPiece& a,
                                                                                const NamedPiece& b) {
  using Found = std::optional<Compared>;
  if (a.layout != b.layout || a.is_of_nibbles != b.is_of_nibbles) return Found();
  const auto one = as_tensor(a);
  const auto other = as_tensor(b);
  if (!one || !other) return Found();
  const std::tuple key(a.data.place(), b.data.place(), one->scalar_type, a.is_of_nibbles);
  const auto known = known_.find(key);
  if (known != known_.end()) return Found(known->second.compared);
  Tolerance tolerance = tolerance_.value_or(Tolerance{.absolute = 0, .relative = 0});
  // The difference of two integers is an integer below 2^64.
  constexpr double kMost = 1e18;
  tolerance.integer = static_cast<std::uint64_t>(std::min(tolerance.absolute.value_or(0), kMost));
  ETSTREAM_ASSIGN(const Comparison comparison, etstream::compare(*one, *other, tolerance));
  const Compared compared{{comparison.elements, comparison.equal, comparison.not_finite,
                           comparison.largest_absolute_error, comparison.mean_absolute_error},
                          comparison.passed()};
  known_.emplace(key, Known{a.data, b.data, compared});
  return Found(compared);
}

Result<bool> DiffList::compare_data(std::string_view subject, const NamedPiece& a, const NamedPiece& b) {
  ETSTREAM_ASSIGN(const auto different, shared_->comparisons.first_difference(a.data, b.data));
  if (!different) return true;
  ETSTREAM_ASSIGN(const auto compared, shared_->elements.compare(a, b));
  const bool is_tolerated = compared && compared->passes && has_tolerance();
  const auto told = [](const NamedPiece& piece) {
    std::string out = piece.key.empty() ? "" : text("key {}, ", piece.key);
    if (!piece.what.empty()) out += text("{}, ", piece.what);
    return out + counted(piece.data.size(), "byte");
  };
  add({.kind = is_tolerated ? DiffEntry::Kind::kTolerated : DiffEntry::Kind::kContent,
       .subject = std::string(subject),
       .in_a = text("{}, which differ from byte {} on", told(a), *different),
       .in_b = told(b),
       .elements = compared ? std::optional(compared->difference) : std::nullopt});
  return false;
}

}  // namespace etstream
