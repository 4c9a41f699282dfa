// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/pickle_writer.h"

#include <limits>
#include <span>
#include <utility>

namespace etstream {

PickleWriter::PickleWriter() {
  put(PickleOpcode::kProtocol);
  put_bytes(std::uint8_t{2});
}

template <class Integer>
void PickleWriter::put_bytes(Integer number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PickleWriter::put_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PickleWriter::put_integer(std::uint64_t number) {
  if (number <= std::numeric_limits<std::uint8_t>::max()) {
    put(PickleOpcode::kBinInt1);
    put_bytes(static_cast<std::uint8_t>(number));
  } else if (number <= std::numeric_limits<std::uint16_t>::max()) {
    put(PickleOpcode::kBinInt2);
    put_bytes(static_cast<std::uint16_t>(number));
  } else if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    put(PickleOpcode::kBinInt);
    put_bytes(static_cast<std::int32_t>(number));
  } else {
    // The number and its sign take the fewest bytes that hold them.
    std::uint8_t size = 1;
    while (size < sizeof(number) && number >> (8U * size - 1) != 0) ++size;
    put(PickleOpcode::kLong1);
    put_bytes(size);
    const auto bytes = std::as_bytes(std::span(&number, 1)).first(size);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
}

void PickleWriter::put_string(std::string_view string) {
  put(PickleOpcode::kBinUnicode);
  put_bytes(static_cast<std::uint32_t>(string.size()));
  put_text(string);
  memoize();
}

/// Puts the object that was kept under `key`, or else keeps the next one under it.
bool PickleWriter::put_known(const std::string& key) {
  const auto [found, is_new] = shared_.try_emplace(key, kept_);
  if (is_new) return false;
  if (found->second <= std::numeric_limits<std::uint8_t>::max()) {
    put(PickleOpcode::kBinGet);
    put_bytes(static_cast<std::uint8_t>(found->second));
  } else {
    put(PickleOpcode::kLongBinGet);
    put_bytes(found->second);
  }
  return true;
}

void PickleWriter::put_shared_string(const std::string& string) {
  if (!put_known(string)) put_string(string);
}

void PickleWriter::put_global(const std::string& module, std::string_view name) {
  const std::string lines = module + "\n" + std::string(name) + "\n";
  if (put_known(lines)) return;
  put(PickleOpcode::kGlobal);
  put_text(lines);
  memoize();
}

void PickleWriter::put_tuple(const std::vector<std::uint64_t>& numbers) {
  if (numbers.empty()) return put(PickleOpcode::kEmptyTuple);
  constexpr PickleOpcode kShort[] = {PickleOpcode::kTuple1, PickleOpcode::kTuple2, PickleOpcode::kTuple3};
  const bool is_short = numbers.size() <= std::size(kShort);
  if (!is_short) put(PickleOpcode::kMark);
  for (const std::uint64_t number : numbers) put_integer(number);
  put(is_short ? kShort[numbers.size() - 1] : PickleOpcode::kTuple);
  memoize();
}

void PickleWriter::memoize() {
  if (kept_ <= std::numeric_limits<std::uint8_t>::max()) {
    put(PickleOpcode::kBinPut);
    put_bytes(static_cast<std::uint8_t>(kept_));
  } else {
    put(PickleOpcode::kLongBinPut);
    put_bytes(kept_);
  }
  ++kept_;
}

std::vector<std::byte> PickleWriter::finish() && {
  put(PickleOpcode::kStop);
  return std::move(bytes_);
}

}  // namespace etstream
