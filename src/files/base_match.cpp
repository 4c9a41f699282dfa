// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/base_match.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/try.h"
#include "etstream/file_contents.h"
#include "files/any_file.h"
#include "files/content_index.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {
namespace {

/// The parts of a file that have names and no parts themselves, and what its delegates ask for.
struct Parts {
  std::vector<FileContent> contents;
  std::vector<DelegateUses> delegates;
};

Result<Parts> parts_of(const ByteSource& file) {
  ETSTREAM_ASSIGN(const AnyFile opened, open_any(file));
  Parts out;
  ETSTREAM_ASSIGN(auto contents, read_contents(opened));
  std::vector<bool> has_parts(contents.size());
  for (const FileContent& each : contents) has_parts[each.parent] = true;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (!has_parts[i] && !contents[i].name.empty()) out.contents.push_back(std::move(contents[i]));
  }
  const auto* program = std::get_if<ProgramFile>(&opened);
  if (program != nullptr) {
    ETSTREAM_ASSIGN(out.delegates, read_named_data_uses(*program));
  } else if (const auto* const bundle = std::get_if<BundledProgramFile>(&opened)) {
    if (const auto bundled = bundle->open_program()) {
      ETSTREAM_ASSIGN(out.delegates, read_named_data_uses(*bundled));
    }
  }
  return out;
}

/// Finds parts of one file in another.
class PartMatch {
 public:
  PartMatch(const Parts& file, const Parts& base) : base_(base.contents), used_(base.contents.size()) {
    for (std::size_t i = 0; i < base_.size(); ++i) by_name_[base_[i].name].push_back(i);
    // A key is a hash of the data, so what is asked for in the same place has another key.
    for (std::size_t i = 0; i < std::min(file.delegates.size(), base.delegates.size()); ++i) {
      const auto& uses = file.delegates[i].uses;
      const auto& base_uses = base.delegates[i].uses;
      for (std::size_t j = 0; j < std::min(uses.size(), base_uses.size()); ++j) {
        if (uses[j].size == base_uses[j].size) base_keys_.emplace(uses[j].key, base_uses[j].key);
      }
    }
  }

  std::vector<BaseRange> run(const std::vector<FileContent>& contents) {
    std::vector<BaseRange> out;
    std::vector<const FileContent*> left;
    for (const FileContent& each : contents) {
      const auto base_key = base_keys_.find(each.name);
      if (add(each, each.name, out)) continue;
      if (base_key != base_keys_.end() && add(each, base_key->second, out)) continue;
      if (each.kind == ContentKind::kNamedData) left.push_back(&each);
    }
    // Keys that no delegate of a known backend asks for: by order, among those of one size.
    std::map<std::uint64_t, std::vector<std::size_t>> by_size;
    for (std::size_t i = base_.size(); i-- > 0;) {
      if (!used_[i] && base_[i].kind == ContentKind::kNamedData) by_size[base_[i].size].push_back(i);
    }
    for (const FileContent* each : left) {
      auto& found = by_size[each->size];
      if (found.empty()) continue;
      out.push_back({each->offset, each->size, base_[found.back()].offset, true});
      found.pop_back();
    }
    std::ranges::sort(out, {}, &BaseRange::offset);
    return out;
  }

 private:
  /// Adds the range of `content` that has the name in the base, if there is one. A tensor may have grown.
  /// Looks only at the first parts that are left of a name, as a file may have any number of one name.
  bool add(const FileContent& content, const std::string& name, std::vector<BaseRange>& out) {
    constexpr std::size_t kMostOfOneName = 16;
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return false;
    std::deque<std::size_t>& parts = found->second;
    const auto end = parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), kMostOfOneName));
    const auto fitting = std::find_if(parts.begin(), end, [&](std::size_t i) {
      return base_[i].size == content.size ||
             (content.element_size != 0 && content.element_size == base_[i].element_size);
    });
    if (fitting == end) return false;
    const FileContent& other = base_[*fitting];
    used_[*fitting] = true;
    parts.erase(fitting);
    out.push_back({content.offset, std::min(content.size, other.size), other.offset, true});
    return true;
  }

  const std::vector<FileContent>& base_;
  std::vector<bool> used_;
  std::map<std::string, std::deque<std::size_t>> by_name_;  // those that are not used
  std::map<std::string, std::string> base_keys_;
};

}  // namespace

Result<Base> match_base(const ByteSource& file, const ByteSource& base) {
  return without_exceptions([&]() -> Result<Base> {
    std::vector<BaseRange> named;
    {
      const auto parts = parts_of(file);
      const auto base_parts = parts ? parts_of(base) : parts;
      if (base_parts) named = PartMatch(*parts, *base_parts).run(parts->contents);
    }
    ETSTREAM_ASSIGN(const ContentIndex index, ContentIndex::read(base));
    Base out{.file = base, .hash = index.hash()};
    std::uint64_t done = 0;
    for (const BaseRange& each : named) {
      ETSTREAM_TRY(index.find(file, done, each.offset, out.ranges));
      out.ranges.push_back(each);
      done = each.offset + each.size;
    }
    ETSTREAM_TRY(index.find(file, done, file.size(), out.ranges));
    return out;
  });
}

}  // namespace etstream
