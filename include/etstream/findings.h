// SPDX-License-Identifier: BSD-3-Clause
//
// What a check has to say of a file.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const etstream::Findings findings = etstream::verify(file).value();
//   for (const etstream::Finding& error : findings.errors) std::puts(error.message.c_str());
//   if (findings.ok()) std::puts("sound");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etstream/result.h"

namespace etstream {

/// `message` is a sentence for a person: where, what was expected, what was found. `file` and `offset`, in
/// bytes, are the place that it names, as in an Error; of what has no place in a file there is none.
struct Finding {
  std::string message;
  std::optional<std::string> file;
  std::optional<std::uint64_t> offset;

  Finding(std::string words) : message(std::move(words)) {}  // NOLINT: converts on purpose
  Finding(Error error)                                       // NOLINT: converts on purpose
      : message(std::move(error.message)), file(std::move(error.file)), offset(error.offset) {}
};

struct Findings {
  std::vector<Finding> errors;    // the file is damaged, or would harm or fail whoever runs it
  std::vector<Finding> warnings;  // it works, but not as one would think
  /// Operators that a program calls and ExecuTorch has no kernels for: their arguments are not checked.
  std::uint64_t unknown_operators = 0;

  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

}  // namespace etstream
