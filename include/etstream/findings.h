// SPDX-License-Identifier: BSD-3-Clause
//
// The results of checking a file.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const etstream::Findings findings = etstream::verify(file).value();
//   for (const etstream::Finding& error : findings.errors) std::puts(full_message(error).c_str());
//   if (findings.ok()) std::puts("sound");
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etstream/advice.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// `message` is a sentence for people: where, what was expected, what was found. `file` and `offset`, in
/// bytes, are the place that it names, as in an Error; none if the problem has no place in a file. `advice`
/// is an Error's too.
struct Finding {
  std::string message;
  std::optional<std::string> file;
  std::optional<std::uint64_t> offset;
  Advice advice;

  /// A finding without a place, or one at the place of an error.
  Finding(std::string words) : message(std::move(words)) {}  // NOLINT: converts on purpose
  Finding(Error error)                                       // NOLINT: converts on purpose
      : message(std::move(error.message)),
        file(std::move(error.file)),
        offset(error.offset),
        advice(std::move(error.advice)) {}
};

/// Returns the message with the advice, in the words of the library or of another interface.
[[nodiscard]] inline std::string full_message(const Finding& finding, TermWords words = library_words) {
  return full_message(finding.message, finding.advice, words);
}

/// A function that is told of a problem with which work goes on.
using Warn = std::function<void(const Finding&)>;

/// All that a check has found.
struct Findings {
  std::vector<Finding> errors;    // the file is damaged, or running it would fail or do harm
  std::vector<Finding> warnings;  // the file works, but maybe not as intended
  /// The number of operators that a program calls and that etstream does not know: custom ones, those of
  /// backends and of later releases. Their arguments are not checked. The runtime needs a kernel registered
  /// for each.
  std::uint64_t unknown_operators = 0;
  /// The different names of the first 100 of these, in order.
  std::vector<std::string> unknown_operator_names = {};

  /// Returns whether there is no error; there may be warnings.
  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Refuses a file in which verify() has found errors. Error: kCorrupt, with the first three of them and the
/// number of the others.
[[nodiscard]] ETSTREAM_EXPORT Result<void> require_sound(const std::string& file, const Findings& findings);

}  // namespace etstream
