// SPDX-License-Identifier: BSD-3-Clause
#include "core/io/read_pieces.h"

#include <functional>
#include <utility>
#include <vector>

namespace etstream {

Result<ContentHash> hash_of(const ByteSource& source) {
  ContentHasher hasher;
  ETSTREAM_TRY(read_pieces(source, [&](std::span<const std::byte> bytes) { hasher.update(bytes); }));
  return hasher.hash();
}

Result<void> find_keys(const ByteSource& source, const std::set<std::string>& keys,
                       std::set<std::string>& found) {
  std::size_t longest = 1;
  std::vector<std::pair<const std::string*, std::boyer_moore_horspool_searcher<std::string::const_iterator>>>
      searchers;
  for (const std::string& key : keys) {
    longest = std::max(longest, key.size());
    searchers.emplace_back(&key, std::boyer_moore_horspool_searcher(key.begin(), key.end()));
  }
  std::string window;  // the end of what has passed, as a key may begin there, and what comes
  return read_pieces(source, [&](std::span<const std::byte> bytes) {
    window.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const auto& [key, searcher] : searchers) {
      if (found.contains(*key)) continue;
      if (std::search(window.cbegin(), window.cend(), searcher) != window.cend() || key->empty()) {
        found.insert(*key);
      }
    }
    window.erase(0, window.size() - std::min(window.size(), longest - 1));
  });
}

}  // namespace etstream
