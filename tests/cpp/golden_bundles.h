// SPDX-License-Identifier: BSD-3-Clause
//
// The bundles that ExecuTorch wrote, and the values in them (tests/golden).
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "etstream/bundled_program.h"
#include "test_paths.h"

namespace etstream {

inline std::vector<std::string> golden_folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldenDir)) {
    if (std::filesystem::exists(entry.path() / "expected.bpte")) out.push_back(entry.path().string());
  }
  return out;
}

inline BundledProgram read_golden(const std::string& folder) {
  auto program = ByteSource::file(folder + "/program.pte");
  auto suites = read_test_cases(folder + "/cases.json");
  REQUIRE_MESSAGE(program, program.error().message);
  REQUIRE_MESSAGE(suites, suites.error().message);
  BundledProgram bundle;
  bundle.program = std::move(program).value();
  bundle.method_test_suites = std::move(suites).value();
  return bundle;
}

}  // namespace etstream
