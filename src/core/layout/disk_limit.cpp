// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/disk_limit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "core/base/checked.h"
#include "core/base/size_limit.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"

namespace etstream {
namespace {

constexpr std::uint64_t kMostGrowth = 4;
/// Small files may share as they like, such as one tensor under many names.
constexpr std::uint64_t kFreeGrowth = std::uint64_t{1} << 20;

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

/// The storages that outputs take their bytes from.
class Inputs {
 public:
  /// Returns whether the bytes of an output come from a storage; zeros come from none.
  bool add(const ByteSource& source) {
    const ByteStorage* const storage = source.place().storage;
    if (storage == nullptr || storage == ByteSource::zeros(1).place().storage) return false;
    if (const auto* const derived = dynamic_cast<const DerivedStorage*>(storage)) {
      add_parts(*derived);
    } else {
      std::uint64_t& used = used_[storage];
      used = capped_sum(used, source.size());
    }
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
  void add_parts(const DerivedStorage& derived) {
    if (!derived_.insert(&derived).second) return;
    derived.for_each_part([this](const ByteSource& part) {
      const ByteStorage* const storage = part.place().storage;
      if (const auto* const inner = dynamic_cast<const DerivedStorage*>(storage)) return add_parts(*inner);
      // The outputs take an unknown part of it, so all of it counts.
      if (add(part)) used_[storage] = storage->size();
    });
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
  const std::uint64_t most =
      checked_multiply(inputs.size(), kMostGrowth).value_or(std::numeric_limits<std::uint64_t>::max());
  if (output <= capped_sum(most, kFreeGrowth)) return {};
  std::uint64_t size = 0;
  for (const FilePlan* const plan : plans) size = capped_sum(size, plan->size);
  return with_advice(
      error_in(ErrorCode::kTooLarge, inputs.name(),
               "expected output of at most {} times the {} that it is made from, where names share data, "
               "found {} ({} bytes)",
               kMostGrowth, readable_size(inputs.size()), readable_size(size), size),
      {AdviceTerm::kMaxDisk, text(" {} allows it", limit_for(size))});
}

}  // namespace

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
