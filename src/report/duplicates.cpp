// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/duplicates.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "etstream/inspect.h"
#include "io/file_budget.h"
#include "io/hash_source.h"
#include "report/any_file.h"

namespace etstream {
namespace {

std::string name_of(const FileContent& content) {
  const bool is_named = content.kind != ContentKind::kContainer && content.kind != ContentKind::kOther;
  std::string out =
      is_named ? text("{} {}", name_of(content.kind), quote(content.name)) : printable(content.name);
  if (!content.detail.empty()) out += text(" ({})", printable(content.detail));
  return out;
}

class DuplicateFinder {
 public:
  DuplicateFinder(const ByteSource& file, const std::vector<FileContent>& contents)
      : file_(file), contents_(contents), budget_(file), is_spare_(contents.size()) {}

  Result<std::vector<Duplicates>> run() {
    // The largest first, and each behind what it lies in: what is in a spare one is spare with it.
    std::vector<std::uint32_t> payloads(contents_.size());
    std::iota(payloads.begin(), payloads.end(), 0U);
    const auto size = [&](std::uint32_t i) { return contents_[i].size; };
    std::ranges::stable_sort(payloads, std::greater{}, size);
    for (auto begin = payloads.begin(); begin != payloads.end();) {
      const auto end =
          std::find_if(begin, payloads.end(), [&](std::uint32_t i) { return size(i) != size(*begin); });
      ETSTREAM_TRY(add(begin, end));
      begin = end;
    }
    std::ranges::stable_sort(out_, std::greater{}, &Duplicates::wasted);
    return std::move(out_);
  }

 private:
  using Iterator = std::vector<std::uint32_t>::const_iterator;

  [[nodiscard]] bool is_payload(std::uint32_t index) const {
    const ContentKind kind = contents_[index].kind;
    return index != 0 && kind != ContentKind::kTables && kind != ContentKind::kPadding;
  }

  /// Adds the groups of equal bytes among those of one size.
  Result<void> add(Iterator begin, Iterator end) {
    std::vector<std::uint32_t> payloads;
    for (; begin != end; ++begin) {
      is_spare_[*begin] = is_spare_[contents_[*begin].parent];
      if (!is_spare_[*begin] && is_payload(*begin)) payloads.push_back(*begin);
    }
    std::map<ContentHash, Duplicates> groups;
    if (payloads.size() < 2) return {};
    for (const std::uint32_t index : payloads) {
      const FileContent& content = contents_[index];
      ETSTREAM_TRY(budget_.spend(content.size));
      ETSTREAM_ASSIGN(const ByteSource payload, file_.slice(content.offset, content.size));
      ETSTREAM_ASSIGN(const ContentHash hash, hash_of(payload));
      Duplicates& group = groups[hash];
      is_spare_[index] = !group.names.empty();
      group.size = content.size;
      group.names.push_back(name_of(content));
      group.offsets.push_back(content.offset);
    }
    for (auto& [hash, group] : groups) {
      if (group.names.size() > 1) out_.push_back(std::move(group));
    }
    return {};
  }

  const ByteSource& file_;
  const std::vector<FileContent>& contents_;
  FileBudget budget_;
  std::vector<bool> is_spare_;
  std::vector<Duplicates> out_;
};

}  // namespace

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file,
                                                const std::vector<FileContent>& contents) {
  return DuplicateFinder(file, contents).run();
}

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file) {
  ETSTREAM_ASSIGN(FileInspection inspection, inspect(file, {.duplicates = true}));
  return std::move(inspection.duplicates);
}

}  // namespace etstream
