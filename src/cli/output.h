// SPDX-License-Identifier: BSD-3-Clause
//
// The outputs of a command, which appear whole or go to standard output, and what it says of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"
#include "present/json.h"

namespace etstream::cli {

/// Returns whether a path stands for standard output: "-", or whatever leads to where that goes.
[[nodiscard]] bool is_standard_output(const std::string& path);

/// An output and its path.
struct Output {
  const FilePlan* plan = nullptr;  // null where `write` is there
  std::string path;
  bool is_text = false;  // which may go to a terminal
  /// Writes an output that has no plan, such as a folder, up to its commit.
  std::function<Result<std::unique_ptr<PendingOutput>>(const Progress&)> write = {};
  std::string words = {};  // what is said of it, if that is not its size
};

/// Writes the outputs, with a progress bar, until they are done or interrupted: all appear in the end, or
/// none does. They come in this order, after outputs to streams. Refuses a file that the command has read,
/// which is probably a slip, and a terminal unless the output is text. For a dry run, does what
/// check_outputs() does. `folder`, if it does not exist, is made for them, and removed if they do not appear.
/// An output on standard output is alone there: reports are left out from then on.
[[nodiscard]] Result<void> write_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                                         const std::string& folder = {});

/// Returns whether write_outputs() has put a file or a folder in its place.
[[nodiscard]] bool outputs_have_appeared();

/// Returns how many bytes of memory the command takes to write the outputs that have plans: those that grow
/// with their metadata, those of packing, and those of the command and its readers.
[[nodiscard]] std::uint64_t planned_memory(const std::vector<Output>& outputs);

/// Does what comes before all writing, also for plans that are only shown, whose outputs may have no path.
/// Errors: kTooLarge if the plans' figures are over the limits, or, without a limit for the disk, over what
/// check_disk() allows; kInvalidArgument if two outputs are one file, or one is an input; those of
/// check_file_sink(). `folder` is as for write_outputs().
[[nodiscard]] Result<void> check_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                                         const std::string& folder = {});

/// Opens a sink to `path`, or to standard output. See write_outputs(); `is_text` may go to a terminal.
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

/// Shows the plan, or writes the outputs, of which it is one, and says so: the path and the words of each, or
/// as JSON {"output", "size"} of the plan with the members of `more` behind them. Errors: those of
/// write_outputs().
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const std::vector<Output>& outputs, const Json& more);
/// Does the same for a file that comes alone.
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const std::string& words, const Json& more);
/// Does the same for a file with `count` of what `noun` names ("tensor"): says how large it is and how many
/// there are, as JSON {"output", "size", "tensors"}.
[[nodiscard]] Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                                         const std::string& noun, std::size_t count);

/// Tensor data as one file, or as the shards that --split-max-size asks for.
struct TensorDataOutput {
  struct File {
    std::string path;
    FilePlan plan;
    std::size_t keys = 0;
  };
  std::deque<File> files;
  bool is_split = false;
  bool is_named = true;  // or the paths of shards are examples

  [[nodiscard]] std::uint64_t size() const;
  /// Returns the outputs, which refer to this; without paths if they are not named.
  [[nodiscard]] std::vector<Output> outputs() const;
};

/// Adds an option that sets `most`, which outlives the command.
Option add_split_option(CLI::App& command, std::optional<std::uint64_t>& most);

/// Plans a file at `path`, or its shards with data of at most `most` bytes each. Errors: those of split() and
/// of plan(); kInvalidArgument for shards to standard output.
[[nodiscard]] Result<TensorDataOutput> plan_tensor_data_output(const TensorData& data,
                                                               const std::string& path,
                                                               std::optional<std::uint64_t> most);

/// Prints the files with their contents, a line each, or returns them as JSON.
void print_shards(const TensorDataOutput& output);
[[nodiscard]] Json shards_to_json(const TensorDataOutput& output);

}  // namespace etstream::cli
