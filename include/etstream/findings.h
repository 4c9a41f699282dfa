// SPDX-License-Identifier: BSD-3-Clause
//
// What a check has to say of a file.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const etstream::Findings findings = etstream::verify(file).value();
//   for (const std::string& error : findings.errors) std::puts(error.c_str());
//   if (findings.ok()) std::puts("sound");
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace etstream {

/// Each is a sentence for a person: where, what was expected, what was found.
struct Findings {
  std::vector<std::string> errors;    // the file is damaged, or would harm or fail whoever runs it
  std::vector<std::string> warnings;  // it works, but not as one would think
  /// Operators that a program calls and ExecuTorch has no kernels for: their arguments are not checked.
  std::uint64_t unknown_operators = 0;

  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

}  // namespace etstream
