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

/// A .npy file with `header`, a Python dict (numpy.lib.format).
inline std::string npy_file(std::string_view header, std::string_view data, int version = 1) {
  const std::string length = little_endian(header.size(), version == 1 ? 2 : 4);
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} + length + std::string(header) +
         std::string(data);
}

/// The header of a .npy file, without its padding.
inline std::string npy_dict(std::string_view descr, std::string_view shape,
                            std::string_view fortran_order = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran_order) +
         ", 'shape': " + std::string(shape) + ", }\n";
}

/// A safetensors file with `header`, a JSON object.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

}  // namespace etstream
