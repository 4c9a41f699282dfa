// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of .npy and safetensors files, good and bad.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace etstream {

inline std::string little_endian(std::uint64_t n, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(n >> (8 * i));
  return out;
}

inline std::string repeated_text(std::string_view what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += what;
  return out;
}

/// Returns a .npy file with `header`, a Python dict (numpy.lib.format).
inline std::string npy_file(std::string_view header, std::string_view data, int version = 1) {
  const std::string length = little_endian(header.size(), version == 1 ? 2 : 4);
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} + length + std::string(header) +
         std::string(data);
}

/// Returns the header of a .npy file, without its padding.
inline std::string npy_dict(std::string_view descr, std::string_view shape,
                            std::string_view fortran_order = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran_order) +
         ", 'shape': " + std::string(shape) + ", }\n";
}

/// Returns a safetensors file with `header`, a JSON object.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

/// Returns a GGUF file that is number `number`, from 0 on, of `count`, and says that all have `tensors`
/// tensors together. It has one tensor, of a byte: "t0" in the first file.
inline std::string split_gguf(std::uint64_t number, std::uint64_t count, std::uint64_t tensors) {
  const auto string = [](const std::string& words) { return little_endian(words.size(), 8) + words; };
  const auto entry = [&](const std::string& key, int type, std::uint64_t value, int bytes) {
    return string(key) + little_endian(static_cast<std::uint64_t>(type), 4) + little_endian(value, bytes);
  };
  std::string out = "GGUF" + little_endian(3, 4) + little_endian(1, 8) + little_endian(3, 8);
  out += entry("split.no", 2, number, 2) + entry("split.count", 2, count, 2);
  out += entry("split.tensors.count", 5, tensors, 4);
  out += string("t" + std::to_string(number)) + little_endian(1, 4) + little_endian(1, 8);
  out += little_endian(24, 4) + little_endian(0, 8);
  out.resize((out.size() + 31) / 32 * 32);
  return out + static_cast<char>('0' + number);
}

}  // namespace etstream
