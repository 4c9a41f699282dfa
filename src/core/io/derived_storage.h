// SPDX-License-Identifier: BSD-3-Clause
//
// DerivedStorage: bytes that are made from those of other sources.
#pragma once

#include <functional>
#include <set>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// A storage without bytes of its own, such as a concatenation or a conversion.
class DerivedStorage : public ByteStorage {
 public:
  /// Calls `see` with each source that the bytes are made from.
  virtual void for_each_part(const std::function<void(const ByteSource&)>& see) const = 0;

  /// Calls `see` with each source that has the bytes from which those of this storage are made, maybe more
  /// than once. A storage in between is walked once, as one that is nested can hold another any number of
  /// times.
  void for_each_origin(const std::function<void(const ByteSource&)>& see) const {
    std::set<const DerivedStorage*> walked;
    const std::function<void(const ByteSource&)> walk = [&](const ByteSource& part) {
      const auto* const derived = dynamic_cast<const DerivedStorage*>(part.place().storage);
      if (derived == nullptr) return see(part);
      if (walked.insert(derived).second) derived->for_each_part(walk);
    };
    for_each_part(walk);
  }

  [[nodiscard]] Result<void> check_unchanged() const final {
    Result<void> out;
    for_each_origin([&](const ByteSource& origin) {
      if (out) out = origin.check_unchanged();
    });
    return out;
  }
  [[nodiscard]] bool lies_in(const FileIdentity& file) const final {
    bool found = false;
    for_each_origin([&](const ByteSource& origin) { found = found || origin.lies_in(file); });
    return found;
  }
};

/// Calls `see` with each source that has the bytes from which those of `source` are made, or with `source`
/// itself if it has bytes of its own.
inline void for_each_origin(const ByteSource& source, const std::function<void(const ByteSource&)>& see) {
  const auto* const derived = dynamic_cast<const DerivedStorage*>(source.place().storage);
  if (derived == nullptr) return see(source);
  derived->for_each_origin(see);
}

}  // namespace etstream
