// SPDX-License-Identifier: BSD-3-Clause
//
// The output of a command: a file that appears whole, or standard output.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "etstream/file_plan.h"
#include "etstream/findings.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/write.h"

namespace etstream::cli {

/// Returns whether a path stands for standard output: "-", or whatever leads to where that goes.
[[nodiscard]] bool is_standard_output(const std::string& path);

/// Writes `plan` to `path`, with a progress bar, until it is done or interrupted. Refuses a file that the
/// command has read, which is probably a slip, and a terminal unless the output is text.
[[nodiscard]] Result<void> write_output(const FilePlan& plan, const std::string& path,
                                        const CommonOptions& options);

/// An output and its path.
struct Output {
  const FilePlan* plan = nullptr;  // null where `write` is there
  std::string path;
  bool is_text = false;  // which may go to a terminal
  /// Writes an output that has no plan, such as a folder, up to its commit.
  std::function<Result<std::unique_ptr<PendingOutput>>(const Progress&)> write = {};
};

/// Does the same for several outputs: all appear in the end, or none does. They come in this order, after
/// outputs to streams. `folder`, if it does not exist, is made for them, and removed if they do not appear.
/// An output on standard output is alone there: reports are left out from then on.
[[nodiscard]] Result<void> write_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                                         const std::string& folder = {});

/// Returns whether write_outputs() has put a file or a folder in its place.
[[nodiscard]] bool outputs_have_appeared();

/// Prints the path and the size of each output. All have plans.
void say_sizes(const std::vector<Output>& outputs);

/// Returns how many bytes of memory the command takes to write the outputs that have plans: those that grow
/// with their metadata, those of packing, and those of the command and its readers.
[[nodiscard]] std::uint64_t planned_memory(const std::vector<Output>& outputs);

/// Does what comes before all writing, also for plans that are only shown, whose outputs may have no path.
/// Errors: kTooLarge if the plans' figures are over the limits, or, without a limit for the disk, over what
/// check_disk() allows; kInvalidArgument if two outputs are one file, or one is an input; those of
/// check_file_sink(). `folder` is as for write_outputs().
[[nodiscard]] Result<void> check_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                                         const std::string& folder = {});

/// Opens a sink to `path`, or to standard output. See write_output; `is_text` may go to a terminal.
[[nodiscard]] Result<std::unique_ptr<Sink>> open_output(const std::string& path,
                                                        const FileSinkOptions& options, bool is_text);

/// Returns a progress function with a bar, which stops the writing when the process is interrupted. It
/// catches interrupts while it lives, so it is made before a temporary file and outlives it.
[[nodiscard]] Progress interruptible_progress();

/// Prints a warning on a line of standard error.
void warn(const Finding& warning);

/// Prints each finding on a line of standard error, the errors first. Of more than `most`, the rest is
/// counted.
void print(const Findings& findings, std::size_t most = std::numeric_limits<std::size_t>::max());

/// Returns the options for writing files, with warnings on standard error of what their file system can't do.
[[nodiscard]] FileSinkOptions file_options(bool sync);

}  // namespace etstream::cli
