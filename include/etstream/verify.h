// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the methods of a program on the ExecuTorch runtime that Python has, each run in a process of its own,
// and tells how it ended: also one that a signal has ended, and in which operator.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto runs = etstream::run_methods(file);
//   if (!runs) return runs.error();
//   for (const etstream::MethodRun& run : *runs) std::puts(etstream::summary(run).c_str());
//
// Checks whether a file of any format that etstream knows is sound.
//
//   const auto findings = etstream::verify(etstream::ByteSource::file("model.pte").value());
//   if (!findings) return findings.error();
//   if (!findings->ok()) std::puts(full_message(findings->errors.front()).c_str());
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
// - LABEL_CASE_output_N: write_test_cases(), whose CASE counts within a suite; LABEL is the
//   name of the method, or "suite-" and the number of the suite
//
// The first three may also be in a folder of their own for each case, whose name is CASE in decimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// Options of run_methods().
struct MethodRunOptions {
  std::string python = "python3";  // a path, or a name that is looked for in PATH
  std::uint64_t seed = 0;          // of random inputs
  std::uint32_t seconds = 60;      // that a run may take, at least 1
  /// The most memory that a run may take, in bytes, besides what Python and ExecuTorch took before. Mapped
  /// files don't count. On Linux alone.
  std::uint64_t memory = std::uint64_t{4} << 30;
  Tolerance tolerance;
  /// A function that is called at least ten times a second while a run lasts, in the calling thread. It
  /// returns whether to go on: false ends the runs with kInterrupted. May be empty.
  std::function<bool()> go_on = {};
};

/// An output of a run beside the output that a test case expects.
struct OutputRun {
  std::optional<Comparison> comparison = {};
  /// The reason why they can't be compared, as the end of a sentence: "has shape [2], expected [3]". If there
  /// is neither this nor a comparison, files of outputs don't hold this kind of value: see above.
  std::string problem = {};
  std::string file = {};  // that the output was read from; empty where the method was run

  /// Returns whether nothing differs from what the test case expects.
  [[nodiscard]] bool ok() const noexcept { return problem.empty() && (!comparison || comparison->passed()); }
};

/// A run of a method, on the inputs of one test case or on ones that were made up: here, or on a device that
/// has written its outputs to files.
struct MethodRun {
  /// The way in which a run ended.
  enum class End {
    kOk,
    kOtherOutputs,   // than the test case expects
    kRefused,        // ExecuTorch returned an error, or a kernel threw an exception
    kInputsRefused,  // the same on inputs that were made up, once the method was loaded: no error of the file
    kSignal,         // the process was ended by a signal
    kOutOfTime,
    kOutOfMemory,
    kNotRun,  // the inputs can't be made
  };
  std::string method;  // its name, of which compare_outputs() gives the first 200 bytes
  /// The inputs of the run: "test case 0", counted over all suites of the method; "zeros", "ones" or "random
  /// (seed 0)" if the file has no test case for it, with "shortest" before where sizes may change; "no
  /// tensors" if no input is a tensor.
  std::string inputs;
  End end = End::kOk;
  std::uint32_t error = 0;  // ExecuTorch's number; 0 where there is none
  std::string signal;       // "SIGSEGV"
  std::string reason;       // what ExecuTorch logged of it last, or what else is known
  /// The call that the run ended in: its number, as in ProgramGraph::calls, and its name. Empty if it is not
  /// known or the method had not begun. If a signal comes in a later turn of a loop, this is the jump that
  /// leads to the call.
  std::optional<std::uint64_t> instruction;
  std::string callee;              // "aten::add.out", "delegate XnnpackBackend"
  std::vector<OutputRun> outputs;  // one per output that the test case expects

  /// Returns whether the method returned, with the expected outputs where a test case gives them.
  [[nodiscard]] bool ok() const noexcept { return end == End::kOk; }
};

/// Runs each method of the program, or of the bundle, on all of its test cases where there are any; otherwise
/// on zeros, on ones and on random numbers of the dtypes and shapes of its inputs. Tensors whose sizes may
/// change have one element if they are of integers, such as tokens and positions; if the method does not take
/// these, and otherwise, they are at their bounds. The numbers are from -1 to 1, integers from 0 to 9, as
/// torch makes them after manual_seed(seed + the input's index). Inputs that are no tensors are what the
/// method was exported with. `weights` is empty, or the .ptd file that the program takes.
///
/// Runs whatever the file makes the runtime do: let verify() find no error in it before. The file is not
/// changed. A program in a bundle, and one that is ended by a signal, is copied to a file without a name in
/// $TMPDIR, or /var/tmp. Memory of this process: metadata, and what compare() takes.
///
/// The operator that a signal comes from is found by running ever fewer of the method's instructions.
///
/// Errors: kUnsupported for another kind of file, where Python has no ExecuTorch, or for several weights,
/// which ExecuTorch's Python functions don't take; kNotFound for no such Python; kInterrupted; kCorrupt; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<MethodRun>> run_methods(
    const ByteSource& file, const std::vector<ByteSource>& weights = {},
    const MethodRunOptions& options = {});

/// Describes a run: "forward, random (seed 0): ok", "forward, test case 1: ended by SIGFPE in
/// executorch_prim::mod.Scalar (instruction 3)".
[[nodiscard]] ETSTREAM_EXPORT std::string summary(const MethodRun& run);

/// Returns what to do about a run that is not ok, where something is known. `tolerance` names what accepts
/// larger differences.
[[nodiscard]] ETSTREAM_EXPORT Advice advice_of(const MethodRun& run,
                                               std::string_view tolerance = "a larger tolerance");

/// Describes an output: "output 0: 10 elements agree; ...", "output 0 has shape [2], expected [3]".
[[nodiscard]] ETSTREAM_EXPORT std::string summary(const OutputRun& output, std::size_t index);

/// Returns the name for software: "ok", "other_outputs", "refused", "inputs_refused", "signal",
/// "out_of_time", "out_of_memory", "not_run".
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(MethodRun::End end) noexcept;

/// Returns the name of ExecuTorch's error number (runtime/core/error.h of 1.5.1), such as "InvalidArgument";
/// "" for others.
[[nodiscard]] ETSTREAM_EXPORT std::string_view executorch_error_name(std::uint32_t error) noexcept;

/// Findings, and the files that they are about.
struct FileFindings : Findings {
  /// The keys that the program asks for and does not contain, as external_keys() of program_weights.h returns
  /// them; none if there is no program, or its requests can't be read.
  std::optional<std::vector<std::string>> external_keys;
  std::vector<std::string> files;    // of the set that was checked, if the path stands for several
  std::vector<std::string> weights;  // the paths of the .ptd files that were checked with the program
  std::vector<MethodRun> runs;       // those of add_runs()
};

/// Checks a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file, or an update as it lies
/// (packed_file.h), as file_kind() detects it.
/// Reads all metadata and padding, and payloads that a hash or a checksum protects. Finds at most 100 errors
/// and 100 warnings. Errors: kUnsupported for another kind of file; kIo; kCorrupt for a file that changes
/// while it is read. Other problems in the file are in the findings.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> verify(const ByteSource& file);

/// Checks a .pte or a .bpte and the .ptd files that it is to run with: each by itself and, if all are sound,
/// that they fit, as in program_weights.h. Opens each file once. Finds at most 100 errors and
/// 100 warnings in each. Further error: kUnsupported for other kinds of files than these, if there are
/// `weights`.
[[nodiscard]] ETSTREAM_EXPORT Result<FileFindings> verify(const ByteSource& file,
                                                          const std::vector<ByteSource>& weights);

/// Checks what a path stands for: a file, as verify(ByteSource) does, or weights in several files, as
/// open_checkpoint() finds them. Checks each of these files, that none is missing, and that they belong
/// together; and for an index, that tensors are in the files that it names, with as many bytes as it says.
/// Paths in `weights` stand for whole sets too. Problems of a set are in the findings. With options.partial,
/// each file is checked by itself. Warns of temporary files that killed processes left beside one of the
/// files, see commit_together() in sink.h. Errors: those of verify(ByteSource, ...); those of opening a
/// folder or an index.
[[nodiscard]] ETSTREAM_EXPORT Result<FileFindings> verify(const std::string& path,
                                                          const std::vector<std::string>& weights = {},
                                                          const CheckpointOptions& options = {});

/// Runs the methods of a program or a bundle in which no error was found, as run_methods() does, and adds the
/// runs to `findings`: those that are not ok as errors too, or, of kInputsRefused, as warnings.
/// There may then be more than 100. If there is an error already, runs nothing. Errors: those of
/// run_methods().
[[nodiscard]] ETSTREAM_EXPORT Result<void> add_runs(const ByteSource& file,
                                                    const std::vector<ByteSource>& weights,
                                                    const MethodRunOptions& options, FileFindings& findings);

/// Does the same for a path, with the weights of `findings`, which verify() has returned for it.
[[nodiscard]] ETSTREAM_EXPORT Result<void> add_runs(const std::string& path, const MethodRunOptions& options,
                                                    FileFindings& findings,
                                                    const OpenFile& open_file = &ByteSource::file);

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
