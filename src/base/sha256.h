// SPDX-License-Identifier: BSD-3-Clause
//
// Sha256: the hash that ExecuTorch's backends name data by.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace etstream {

/// Used by one thread at a time.
class Sha256 {
 public:
  /// Throws std::bad_alloc where there is no memory for its 112 bytes.
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes) noexcept;
  /// Of all that has come: 64 hexadecimal digits, lower case. To be called once, after the last update().
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Lower case.
[[nodiscard]] inline std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace etstream
