// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/duplicates.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "etstream/inspect.h"
#include "files/any_file.h"

namespace etstream {
namespace {

std::string name_of(const FileContent& content) {
  const bool is_named = content.kind != ContentKind::kContainer && content.kind != ContentKind::kOther;
  std::string out =
      is_named ? text("{} {}", name_of(content.kind), quote(content.name)) : printable(content.name);
  if (!content.detail.empty()) out += text(" ({})", printable(content.detail));
  return out;
}

bool is_payload(const FileContent& content) {
  return content.kind != ContentKind::kTables && content.kind != ContentKind::kPadding;
}

/// Returns the places in `contents` of those `payloads` that have the same bytes.
Result<std::map<ContentHash, std::vector<std::uint32_t>>> by_bytes(const ByteSource& file,
                                                                   const std::vector<FileContent>& contents,
                                                                   const std::vector<std::uint32_t>& payloads,
                                                                   FileBudget& budget) {
  std::map<ContentHash, std::vector<std::uint32_t>> out;
  for (const std::uint32_t index : payloads) {
    ETSTREAM_TRY(budget.spend(contents[index].size));
    ETSTREAM_ASSIGN(const ByteSource payload, file.slice(contents[index].offset, contents[index].size));
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(payload));
    out[hash].push_back(index);
  }
  return out;
}

}  // namespace

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file,
                                                const std::vector<FileContent>& contents) {
  std::vector<Duplicates> out;
  FileBudget budget(file);
  // The largest come first, and each comes after the one that it lies in: a part of a spare payload is spare
  // with it.
  std::vector<bool> is_spare(contents.size());
  std::vector<std::uint32_t> order(contents.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t i) { return contents[i].size; });
  for (auto next = order.begin(); next != order.end();) {
    const std::uint64_t size = contents[*next].size;
    std::vector<std::uint32_t> payloads;
    for (; next != order.end() && contents[*next].size == size; ++next) {
      is_spare[*next] = is_spare[contents[*next].parent];
      if (!is_spare[*next] && *next != 0 && is_payload(contents[*next])) payloads.push_back(*next);
    }
    if (payloads.size() < 2) continue;
    ETSTREAM_ASSIGN(const auto groups, by_bytes(file, contents, payloads, budget));
    for (const auto& [hash, group] : groups) {
      if (group.size() < 2) continue;
      Duplicates& found = out.emplace_back();
      found.size = size;
      for (const std::uint32_t index : group) {
        is_spare[index] = index != group.front();
        found.names.push_back(name_of(contents[index]));
        found.offsets.push_back(contents[index].offset);
      }
    }
  }
  std::ranges::stable_sort(out, std::greater{}, &Duplicates::wasted);
  return out;
}

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file) {
  ETSTREAM_ASSIGN(FileInspection inspection, inspect(file, {.duplicates = true}));
  return std::move(inspection.duplicates);
}

}  // namespace etstream
