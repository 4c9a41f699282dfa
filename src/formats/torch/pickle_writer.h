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
  /// Puts a number up to 2^63 - 1.
  void put_integer(std::uint64_t number);
  /// Puts a string that is an object of its own, of at most 2^32 - 1 bytes.
  void put_string(std::string_view string);
  /// Puts a string that is the same object at every place, or a class or function.
  void put_shared_string(const std::string& string);
  void put_global(const std::string& module, std::string_view name);
  /// Puts a tuple of numbers.
  void put_tuple(const std::vector<std::uint64_t>& numbers);
  /// Keeps the object that was put last, as Python's pickler keeps every object except numbers and the empty
  /// tuple.
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
