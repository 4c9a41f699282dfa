// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the methods of a program on the ExecuTorch runtime that Python has, each run in a process of its own,
// and tells how it ended: also one that a signal has ended, and in which operator.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto runs = etstream::run_methods(file);
//   if (!runs) return runs.error();
//   for (const etstream::MethodRun& run : *runs) std::puts(etstream::summary(run).c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/advice.h"
#include "etstream/byte_source.h"
#include "etstream/compare.h"
#include "etstream/export.h"
#include "etstream/result.h"

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
  /// is neither this nor a comparison, files of outputs don't hold this kind of value: see output_files.h.
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

}  // namespace etstream
