// SPDX-License-Identifier: BSD-3-Clause
//
// The names of the files that hold outputs of test cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etstream {

/// The name of a file with an output, as verify.h lists them.
struct OutputName {
  std::uint64_t output = 0;
  std::optional<std::uint64_t> test_case = std::nullopt;
  std::string label = {};   // of a suite, in which `test_case` counts; empty for a name without one
  bool is_array = false;    // in a .npy file
  std::string series = {};  // what files of one run of a method have in common: "out-N"
};

/// Reads the name of a file; returns nothing for other names.
[[nodiscard]] std::optional<OutputName> read_output_name(std::string_view name);

/// Returns whether write_test_cases() gives this name to what it writes beside outputs: the list of cases, or
/// an input.
[[nodiscard]] bool is_beside_outputs(std::string_view name);

/// Reads a whole number in at most nine decimal digits.
[[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view digits);

}  // namespace etstream
