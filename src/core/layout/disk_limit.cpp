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
#include "core/io/file_budget.h"

namespace etstream {
namespace {

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
