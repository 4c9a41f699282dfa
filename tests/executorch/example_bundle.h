// SPDX-License-Identifier: BSD-3-Clause
//
// The bundle of examples/, in either format, as a file.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "etstream/bundled_program.h"
#include "test_files.h"
#include "test_paths.h"

namespace etstream {

inline std::string example(std::string_view name) { return kExamplesDir + "/" + std::string(name); }

/// Writes the bundle to `name` in the folder and opens it.
inline BundledProgramFile example_bundle(const TemporaryFolder& folder, const std::string& name,
                                         const BundledProgramFileOptions& options) {
  BundledProgram bundle;
  bundle.program = ByteSource::file(example("model.pte")).value();
  bundle.method_test_suites = read_test_cases(example("cases.json")).value();
  const auto written = write_file(bundle, folder / name, options);
  REQUIRE_MESSAGE(written, written.error().message);
  return BundledProgramFile::open(ByteSource::file(folder / name).value()).value();
}

inline BundledProgramFile segmented_example(const TemporaryFolder& folder) {
  BundledProgramFileOptions options;
  options.format = BundleFormat::kSegmented;
  return example_bundle(folder, "segmented.bpte", options);
}

}  // namespace etstream
