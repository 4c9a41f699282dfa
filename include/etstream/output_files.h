// SPDX-License-Identifier: BSD-3-Clause
//
// Compares outputs that a device has written to files with those that the test cases of a bundle expect.
//
//   const auto bundle = etstream::ByteSource::file("model.bpte").value();
//   const auto found = etstream::compare_outputs(bundle, "outputs");
//   if (!found) return found.error();
//   for (const etstream::MethodRun& run : found->runs) std::puts(etstream::summary(run).c_str());
//   if (!found->as_expected()) std::puts("the device computes something else");
//
// A file has one output. N is the number of the output, and CASE that of the test case; both count from 0,
// CASE over all suites of the method. Where the name has no CASE, the file is of the only case. These are the
// names, as ExecuTorch's programs write them (main of August 2026, cff6f4dd32), with .bin, .raw or .npy:
//
// - BASE-N: executor_runner --output_file BASE, and by semihosting arm_executor_runner -o BASE
// - output_N: enn_executor_runner
// - NNNN: nxp_executor_runner
// - output_CASE_N: qnn_executor_runner, mtk_oss_executor_runner
// - LABEL_CASE_output_N: write_test_cases() of case_files.h, whose CASE counts within a suite; LABEL is the
//   name of the method, or "suite-" and the number of the suite
//
// The first three may also be in a folder of their own for each case, whose name is CASE in decimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/compare.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/method_runs.h"
#include "etstream/result.h"

namespace etstream {

/// Options of compare_outputs().
struct OutputComparisonOptions {
  std::optional<std::string> method = {};  // compares the cases of this method alone
  /// Compares this case alone, counted over all suites of its method.
  std::optional<std::uint64_t> test_case = {};
  Tolerance tolerance = {};
};

/// The outputs of test cases beside the expected ones. The errors are about files that can't be outputs of
/// the bundle, such as that of a case that it does not have; the warnings about files with other names,
/// except the others of write_test_cases(), and about outputs that are not compared.
struct OutputFindings : Findings {
  std::vector<MethodRun> runs;  // one for each test case; each ends with kOk or kOtherOutputs

  /// Returns how many outputs have a problem: no file, or several; another size, dtype or shape.
  [[nodiscard]] ETSTREAM_EXPORT std::uint64_t problems() const noexcept;
  /// Returns whether there is no error, and all outputs are as expected.
  [[nodiscard]] ETSTREAM_EXPORT bool as_expected() const noexcept;
};

/// Compares the files in `folder` with the expected outputs of the bundle `file`, of either format, as
/// compare() does. A file of raw bytes is as long as the output, whose elements are in the order of the
/// expected ones; an array in a .npy file has its dtype and shape. Outputs that are no tensors, which
/// ExecuTorch's programs don't write to files, are not compared. An output without a file is a problem.
/// Reads in pieces of 64 KiB. Memory grows with the number of cases and files. Errors: kUnsupported for
/// another kind of file; kNotFound for no such method, case or folder, and for a folder that has none of
/// these files; kInvalidArgument if the cases expect no tensors, for names that may be of several cases or
/// methods, or for a tolerance that is negative or NaN; kCorrupt for a damaged bundle; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<OutputFindings> compare_outputs(
    const ByteSource& file, const std::string& folder, const OutputComparisonOptions& options = {});

}  // namespace etstream
