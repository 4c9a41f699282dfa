// SPDX-License-Identifier: BSD-3-Clause
//
// Where a command's output goes: a file that appears whole, or standard output.
#pragma once

#include <functional>
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

/// Writes `plan` to `path`, with a progress bar, until it is done or interrupted. A file that the command
/// has read is refused as the output: it is likely a slip. So is a terminal, but for text.
[[nodiscard]] Result<void> write_output(const FilePlan& plan, const std::string& path,
                                        const WriteOptions& options);

/// What goes where.
struct Output {
  const FilePlan* plan = nullptr;  // null where `write` is there
  std::string path;
  bool is_text = false;  // which may go to a terminal
  /// Writes what is no file of a plan that is made already, such as a folder, up to its commit.
  std::function<Result<std::unique_ptr<PendingOutput>>(const Progress&)> write = {};
};

/// The same for several outputs: all are there in the end, or none is. They come in this order, behind what
/// goes to streams. `folder`, if it is not there, is made for them, and removed where they do not appear.
[[nodiscard]] Result<void> write_outputs(const std::vector<Output>& outputs, const WriteOptions& options,
                                         const std::string& folder = {});

/// How many bytes of memory the command takes to write the plans: those that are as large as their metadata,
/// itself and its readers included.
[[nodiscard]] std::uint64_t planned_memory(std::span<const FilePlan* const> plans) noexcept;

/// Does what comes before all writing, also for plans that are only shown, whose outputs may have no path.
/// Errors: kTooLarge where the plans' figures are over the limits, or, without one for the disk, what
/// check_disk() allows; kInvalidArgument where two outputs are one file, or one is an input; those of
/// check_file_sink(). `folder` as for write_outputs().
[[nodiscard]] Result<void> check_outputs(const std::vector<Output>& outputs, const WriteOptions& options,
                                         const std::string& folder = {});

/// Error: kInvalidArgument where two of `paths` are one file.
[[nodiscard]] Result<void> check_apart(const std::vector<std::string>& paths);

/// A sink to `path`, or to standard output. See write_output; `is_text` may go to a terminal.
[[nodiscard]] Result<std::unique_ptr<Sink>> open_output(const std::string& path, bool sync, bool is_text);

/// A progress function with a bar, which stops the writing when the process is interrupted. It catches
/// interrupts while it lives, so it is made before a temporary file and outlives it.
[[nodiscard]] Progress interruptible_progress();

/// Prints the findings of `path`. Error: kCorrupt if there are errors among them.
[[nodiscard]] Result<void> require_sound(const std::string& path, const Findings& findings);

/// Each finding on a line of standard error.
void print(const Findings& findings);

/// How files are written, with warnings on standard error of what their file system can't do.
[[nodiscard]] FileSinkOptions file_options(bool sync);

}  // namespace etstream::cli
