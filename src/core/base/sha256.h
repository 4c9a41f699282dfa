// SPDX-License-Identifier: BSD-3-Clause
//
// Sha256: the hash by which ExecuTorch's backends name data.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace etstream {

/// A hasher for one thread at a time.
class Sha256 {
 public:
  /// Throws std::bad_alloc if there is no memory for its 112 bytes.
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes) noexcept;
  /// Returns the hash of all bytes as 64 hexadecimal digits in lower case. To be called once, after the last
  /// update().
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace etstream
