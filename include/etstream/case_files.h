// SPDX-License-Identifier: BSD-3-Clause
//
// Test cases from a JSON file that refers to tensors in other files.
//
//   const auto suites = etstream::read_test_cases("cases.json");
//   if (!suites) return suites.error();
//   for (const auto& suite : *suites) std::puts(suite.method_name.c_str());
//
// The file gives each method its cases:
//
//   {"forward": [{"inputs": [{"npy": "x.npy"}, 3, true], "expected_outputs": [{"npy": "y.npy"}]}]}
//
// A value is
// - an integer: a number without point or exponent;
// - a double: a number with one, {"double": "nan"}, "inf" or "-inf", or {"double_bits": "7ff8000000000001"},
//   its 64 bits in hexadecimal;
// - true or false;
// - null: a value of no kind;
// - a tensor: {"npy": "x.npy"}, {"safetensors": "f.safetensors", "name": "x"}, or
//   {"raw": "x.bin", "dtype": "float32", "shape": [1, 3]}, each contiguous unless it has "dim_order".
// Paths are relative to the JSON file. The names of dtypes are torch's. A case without expected_outputs, for
// profiling only, has none.
//
// An object of methods gives suites sorted by method name, as ExecuTorch writes them. Where a method comes
// twice, or another order is wanted, a list [{"method": "forward", "cases": [...]}] gives suites as
// they come.
#pragma once

#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/bundled_program_file.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// The suites in the JSON file at `path`. Headers of the tensors' files are read, their data is not.
/// Memory follows the number of values. Errors: kNotFound, kIo, kCorrupt, kInvalidArgument,
/// kUnsupported; they name the file, the line, and the case and value.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<MethodTestSuite>> read_test_cases(const std::string& path);

/// Writes the suites of `bundle` to a new folder, so that read_test_cases(folder + "/cases.json") gives them
/// back, each bit of them: a .npy file a tensor, or raw bytes for what NumPy has not. The folder appears
/// complete or not at all; `folder` does not exist yet, or is empty. Errors: kInvalidArgument if it is
/// neither; kUnsupported for what a JSON file can't say (a name that is not UTF-8, a tensor whose data is
/// not as long as its shape says); the bundle's own; kIo; kInterrupted.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_test_cases(const BundledProgramFile& bundle,
                                                            const std::string& folder,
                                                            const FileSinkOptions& options = {},
                                                            const Progress& progress = {});

}  // namespace etstream
