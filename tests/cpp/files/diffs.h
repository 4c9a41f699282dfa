// SPDX-License-Identifier: BSD-3-Clause
//
// The differences that diff() finds, in a form for tests.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "etstream/diff.h"
#include "file_bytes.h"

namespace etstream {

inline FileDiff diff_of(const std::string& a, const std::string& b, const DiffOptions& options = {}) {
  auto found = diff(file_of(a), file_of(b), options);
  REQUIRE_MESSAGE(found, found.error().message);
  return std::move(found).value();
}

/// Returns a line for each: "content SUBJECT: A | B".
inline std::string lines_of(const FileDiff& found) {
  const std::string kinds[] = {"content ", "layout ", "tolerated "};
  std::string out;
  for (const DiffEntry& one : found.differences) {
    out +=
        kinds[static_cast<std::size_t>(one.kind)] + one.subject + ": " + one.in_a + " | " + one.in_b + "\n";
  }
  return out;
}

}  // namespace etstream
