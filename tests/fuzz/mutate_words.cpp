// SPDX-License-Identifier: BSD-3-Clause
//
// Mutations for flatbuffers. Most of libFuzzer's own move bytes, and so break all offsets across them.
#include <cstdint>
#include <cstring>
#include <random>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// Leaves half of the inputs to libFuzzer, and changes one or a few aligned words of the others in place.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::minstd_rand random(seed);
  random.discard(2);
  const auto below = [&](std::size_t bound) { return static_cast<std::uint32_t>(random() / 8 % bound); };
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  if (size < 2 * kWord || below(2) == 0) return LLVMFuzzerMutate(data, size, max_size);
  do {
    const std::uint32_t at = below(size / kWord) * kWord;
    const std::uint32_t other = below(size / kWord) * kWord;
    std::uint32_t value = 0;
    std::memcpy(&value, data + at, kWord);
    switch (below(4)) {
      case 0:
        std::memcpy(&value, data + other, kWord);
        break;  // what stands elsewhere
      case 1:
        value = other - at;
        break;  // an offset to elsewhere
      case 2:
        value = below(64);
        break;  // a count, an index, an enumerator
      default:
        value += (below(17) - 8) * (below(2) == 0 ? 1 : kWord);
    }
    std::memcpy(data + at, &value, kWord);
  } while (below(2) == 0);
  return size;
}
