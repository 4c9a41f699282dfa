// SPDX-License-Identifier: BSD-3-Clause
//
// PickleWriter: a pickle of protocol 2, byte for byte as Python's pickler spells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch/pickle_opcodes.h"

namespace etstream {

class PickleWriter {
 public:
  PickleWriter();

  void put(PickleOpcode opcode) { bytes_.push_back(static_cast<std::byte>(opcode)); }
  /// A number up to 2^63 - 1.
  void put_integer(std::uint64_t number);
  /// A string that is an object of its own. At most 2^32 - 1 bytes.
  void put_string(std::string_view string);
  /// A string that is one object wherever it stands, or a class or function.
  void put_shared_string(const std::string& string);
  void put_global(const std::string& module, std::string_view name);
  /// A tuple of numbers.
  void put_tuple(const std::vector<std::uint64_t>& numbers);
  /// Keeps what was put last, as an object that is not an empty tuple or a number is kept.
  void memoize();
  /// Ends the pickle.
  [[nodiscard]] std::vector<std::byte> finish() &&;

 private:
  template <class Integer>
  void put_bytes(Integer number);
  void put_text(std::string_view text);
  bool put_known(const std::string& key);

  std::vector<std::byte> bytes_;
  std::map<std::string, std::uint32_t> shared_;  // where strings and globals are kept
  std::uint32_t kept_ = 0;
};

}  // namespace etstream
