// SPDX-License-Identifier: BSD-3-Clause
//
// Test cases from a JSON file that refers to tensors in other files.
//
//   const auto suites = etstream::read_test_cases("cases.json");
//   if (!suites) return suites.error();
//   for (const auto& suite : *suites) std::puts(suite.method_name.c_str());
//
// The file lists the cases of each method:
//
//   {"forward": [{"inputs": [{"npy": "x.npy"}, 3, true], "expected_outputs": [{"npy": "y.npy"}]}]}
//
// A value is
// - an integer: a number without a decimal point or an exponent;
// - a double: a number with either, {"double": "nan"}, "inf" or "-inf", or its 64 bits in hexadecimal,
//   {"double_bits": "7ff8000000000001"};
// - true or false;
// - null: no value (std::monostate);
// - a tensor: {"npy": "x.npy"}, {"safetensors": "f.safetensors", "name": "x"}, or
//   {"raw": "x.bin", "dtype": "float32", "shape": [1, 3]}.
// A bundle has the elements of a tensor in the method's order of dimensions, or in the order of "dim_order"
// if the tensor has one. The bytes of a raw file are contiguous, or, with "dim_order", lie in that order
// already. Paths are relative to the JSON file. dtypes have torch's names. A case without expected_outputs is
// for profiling only.
//
// An object of methods gives suites sorted by method name, as ExecuTorch writes them. To list a method twice,
// or in another order, use a list [{"method": "forward", "cases": [...]}]: its suites keep their order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/bundled_program_file.h"
#include "etstream/export.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// Reads the suites in the JSON file at `path`. Reads the headers of tensor files, but not their data. Memory
/// grows with the number of values. Errors: kNotFound, kIo, kCorrupt, kInvalidArgument, kUnsupported; they
/// name the file, the line, the case and the value.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<MethodTestSuite>> read_test_cases(const std::string& path);

/// Writes the suites of `bundle` to a folder beside `folder` that becomes it when it is committed, alone or
/// by commit_together() with other outputs; else as write_test_cases().
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<PendingOutput>> write_test_cases_uncommitted(
    const BundledProgramFile& bundle, const std::string& folder, const FileSinkOptions& options = {},
    const Progress& progress = {}, std::optional<std::uint64_t> max_disk = {});

/// Writes the suites of `bundle` to a new folder, so that read_test_cases(folder + "/cases.json") returns the
/// same suites, bit for bit. Each tensor is a .npy file, or a file of raw bytes where NumPy can't represent
/// it. The folder appears complete or not at all; `folder` must not exist yet, or be empty. `max_disk` is the
/// limit of check_disk() for the tensors' bytes, which cases may share in the bundle. Errors: kTooLarge as
/// there; kInvalidArgument if it is neither; kUnsupported for what JSON can't express (a name that is not
/// UTF-8, a tensor whose data does not have the size that its shape implies); errors reading the bundle; kIo;
/// kInterrupted.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_test_cases(const BundledProgramFile& bundle,
                                                            const std::string& folder,
                                                            const FileSinkOptions& options = {},
                                                            const Progress& progress = {},
                                                            std::optional<std::uint64_t> max_disk = {});

}  // namespace etstream
