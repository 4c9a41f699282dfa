// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/file_plan.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "core/io/file_budget.h"
#include "core/io/transfer.h"
#include "etstream/sink.h"

namespace etstream {
namespace {

/// Returns the number of `label`. Looks only among the first few labels and at the last. If each of a million
/// extents had its own label, a search of all would take for ever; a label that stands twice does no harm.
std::uint32_t number_of_label(FilePlan& plan, std::string_view label) {
  constexpr std::ptrdiff_t kFirst = 16;
  std::vector<std::string>& labels = plan.labels;
  if (!labels.empty() && labels.back() == label) return static_cast<std::uint32_t>(labels.size() - 1);
  const auto end = labels.begin() + std::min(kFirst, std::ssize(labels));
  const auto found = std::find(labels.begin(), end, label);
  if (found != end) return static_cast<std::uint32_t>(found - labels.begin());
  labels.emplace_back(label);
  return static_cast<std::uint32_t>(labels.size() - 1);
}

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

/// The storages that outputs take their bytes from.
class Inputs {
 public:
  /// Returns whether the bytes of an output come from a storage; zeros come from none.
  bool add(const ByteSource& source) {
    const ByteStorage* const storage = source.place().storage;
    if (is_none(storage)) return false;
    if (derived_.contains(storage)) return true;
    for_each_origin(source, [&](const ByteSource& origin) {
      const ByteStorage* const from = origin.place().storage;
      if (from == storage) {
        used_[from] = capped_sum(used_[from], source.size());
      } else if (!is_none(from)) {
        used_[from] = from->size();  // as the outputs take an unknown part of it
        derived_.insert(storage);
      }
    });
    return true;
  }

  /// Returns the size of all storages. A storage counts whole, unless outputs take fewer bytes from it in
  /// all.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t out = 0;
    for (const auto& [storage, used] : used_) out = capped_sum(out, std::min(used, storage->size()));
    return out;
  }

  /// Returns the name of the largest storage.
  [[nodiscard]] std::string name() const {
    const auto largest =
        std::ranges::max_element(used_, {}, [](const auto& one) { return one.first->size(); });
    return largest == used_.end() ? std::string() : largest->first->name();
  }

 private:
  static bool is_none(const ByteStorage* storage) {
    return storage == nullptr || storage == ByteSource::zeros(1).place().storage;
  }

  std::map<const ByteStorage*, std::uint64_t> used_;  // and how many bytes outputs take from each
  std::set<const ByteStorage*> derived_;
};

Result<void> check_growth(std::span<const FilePlan* const> plans) {
  Inputs inputs;
  std::uint64_t output = 0;
  for (const FilePlan* const plan : plans) {
    for (const Extent& extent : plan->extents) {
      if (inputs.add(extent.source)) output = capped_sum(output, extent.size());
    }
  }
  if (output <= FileBudget::most_payloads(inputs.size())) return {};
  std::uint64_t size = 0;
  for (const FilePlan* const plan : plans) size = capped_sum(size, plan->size);
  return with_advice(
      error_in(ErrorCode::kTooLarge, inputs.name(),
               "expected output of at most {} times the {} that it is made from, where names share data, "
               "found {} ({} bytes)",
               FileBudget::kMostSharing, readable_size(inputs.size()), readable_size(size), size),
      {AdviceTerm::kMaxDisk, text(" {} allows it", limit_for(size))});
}

}  // namespace

void fill_header(FilePlan& plan, std::vector<std::byte> bytes) {
  Extent& header = plan.extents.at(1);
  assert(header.source.size() == bytes.size());
  header.source = ByteSource::owned(std::move(bytes));
}

Result<void> check_alignment(std::string_view what, std::uint32_t alignment, std::uint32_t most) {
  if (is_power_of_two(alignment) && alignment <= most) return {};
  return make_error(ErrorCode::kInvalidArgument, "{} {}: expected a power of two from 1 to {}", what,
                    alignment, most);
}

Result<void> append(FilePlan& plan, std::uint32_t alignment, std::string_view label, ByteSource source) {
  if (source.size() == 0) return {};
  const auto size = checked_add(plan.size, source.size());
  if (!size) return make_error(ErrorCode::kTooLarge, "the file would be over 2^64 - 1 bytes");
  const std::uint32_t number = number_of_label(plan, label);
  plan.extents.push_back({plan.size, alignment, number, std::move(source)});
  plan.size = *size;
  return {};
}

Result<void> pad(FilePlan& plan, std::uint64_t alignment) {
  return append(plan, 1, "padding", ByteSource::zeros(padding_to(plan.size, alignment)));
}

Result<std::vector<std::uint64_t>> place(const std::vector<Segment>& segments) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  for (const Segment& segment : segments) {
    const auto offset = checked_add(end, padding_to(end, segment.alignment));
    const auto next = offset ? checked_add(*offset, segment.source.size()) : std::nullopt;
    if (!next) return make_error(ErrorCode::kTooLarge, "the segments would be over 2^64 - 1 bytes");
    offsets.push_back(*offset);
    end = *next;
  }
  return offsets;
}

Result<std::uint64_t> append(FilePlan& plan, const std::vector<Segment>& segments,
                             const std::vector<std::uint64_t>& offsets, std::uint64_t base_alignment) {
  ETSTREAM_TRY(pad(plan, base_alignment));
  const std::uint64_t base = plan.size;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto at = checked_add(base, offsets[i]);
    if (!at) return make_error(ErrorCode::kTooLarge, "the file would be over 2^64 - 1 bytes");
    ETSTREAM_TRY(append(plan, 1, "padding", ByteSource::zeros(*at - plan.size)));
    ETSTREAM_TRY(append(plan, segments[i].alignment, segments[i].label, segments[i].source));
  }
  return base;
}

std::uint64_t FilePlan::memory() const noexcept {
  const FilePlan* const one = this;
  return memory_to_write({&one, 1});
}

std::uint64_t memory_to_write(std::span<const FilePlan* const> plans) noexcept {
  std::uint64_t out = kTransferBufferSize;
  for (const FilePlan* const plan : plans) {
    out += plan->metadata_size + plan->extents.size() * sizeof(Extent);
  }
  return out;
}

Result<ByteSource> source_of(const FilePlan& plan) {
  return without_exceptions([&]() -> Result<ByteSource> {
    if (plan.trailer) return Error{ErrorCode::kUnsupported, "the end of the file is not known yet"};
    std::vector<ByteSource> parts;
    for (const Extent& extent : plan.extents) parts.push_back(extent.source);
    return ByteSource::concatenation(std::move(parts));
  });
}

FilePlan plan_copy(ByteSource source, std::string label) {
  FilePlan plan;
  plan.size = plan.payload_size = source.size();
  plan.labels.push_back(std::move(label));
  plan.extents.push_back({0, 1, 0, std::move(source)});
  return plan;
}

Result<void> check_disk(std::span<const FilePlan* const> plans, std::optional<std::uint64_t> max_disk) {
  return without_exceptions([&]() -> Result<void> {
    if (!max_disk) return check_growth(plans);
    std::uint64_t size = 0;
    for (const FilePlan* const plan : plans) size = capped_sum(size, plan->size);
    if (size <= *max_disk) return {};
    return with_advice(
        make_error(ErrorCode::kTooLarge, "writing takes {} ({} bytes) of the disk, over the limit of {}",
                   readable_size(size), size, readable_size(*max_disk)),
        {AdviceTerm::kMaxDisk, text(" {} would fit", limit_for(size))});
  });
}

}  // namespace etstream
