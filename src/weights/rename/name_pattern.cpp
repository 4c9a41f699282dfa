// SPDX-License-Identifier: BSD-3-Clause
#include "weights/rename/name_pattern.h"

namespace etstream {

NamePattern::NamePattern(std::string_view pattern) {
  std::size_t begin = 0;
  for (std::size_t star = pattern.find('*'); star != std::string_view::npos;
       star = pattern.find('*', begin)) {
    pieces_.emplace_back(pattern.substr(begin, star - begin));
    begin = star + 1;
  }
  pieces_.emplace_back(pattern.substr(begin));
}

bool NamePattern::matches(std::string_view key, std::vector<std::string_view>& runs) const {
  runs.clear();
  if (stars() == 0) return key == pieces_.front();
  if (!key.starts_with(pieces_.front()) || !key.ends_with(pieces_.back())) return false;
  const std::size_t last = key.size() - pieces_.back().size();  // where the last piece begins
  std::size_t begin = pieces_.front().size();                   // of the next run
  // A run ends where the piece after it is found first: each '.' of the key is one of a piece, and among
  // others the first place leaves most to the runs that follow.
  for (std::size_t i = 1; i < pieces_.size(); ++i) {
    const std::size_t end = i + 1 < pieces_.size() ? key.find(pieces_[i], begin + 1) : last;
    if (end == std::string_view::npos || end <= begin) return false;
    const std::string_view run = key.substr(begin, end - begin);
    if (run.find('.') != std::string_view::npos) return false;
    runs.push_back(run);
    begin = end + pieces_[i].size();
  }
  return true;
}

std::string NamePattern::filled(const std::vector<std::string_view>& runs) const {
  std::string out = pieces_.front();
  for (std::size_t i = 0; i < stars(); ++i) {
    out += runs[i];
    out += pieces_[i + 1];
  }
  return out;
}

}  // namespace etstream
