// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/option_words.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/input_record.h"
#include "etstream/packed_file.h"
#include "etstream/sink.h"
#include "etstream/write_files.h"
#include "present/print.h"

namespace etstream::cli {
namespace {

bool have_appeared = false;

/// The memory that the command takes before it writes: its data, and the pages of files that readers keep.
/// Measured 0.5 to 1.3 MiB.
constexpr std::uint64_t kOwnMemory = std::uint64_t{3} << 19;

/// Returns the memory of this process in bytes that no file backs; 0 if the system doesn't tell.
std::uint64_t own_anonymous_memory() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") status >> kibibytes;
  }
  return kibibytes << 10;
}

Progress plain_progress() {
  return [bar = std::make_shared<ProgressBar>()](std::uint64_t done, std::uint64_t total) {
    bar->show(done, total);
    return true;
  };
}

/// Returns where standard output goes, for a plan that may go to a terminal if it is text.
Result<std::unique_ptr<Sink>> open_standard_output(bool is_text) {
  if (!is_text && standard_output_is_a_terminal()) {
    return with_advice(make_error(ErrorCode::kInvalidArgument, "the output is binary and not for a terminal"),
                       {"send it to a file or into a pipe"});
  }
  return open_descriptor_sink(kStandardOutput, "standard output");
}

/// Returns the outputs as the library takes them.
std::vector<OutputFile> files_of(const std::vector<Output>& outputs) {
  std::vector<OutputFile> out;
  for (const Output& output : outputs) {
    OutputFile& file =
        out.emplace_back(OutputFile{.plan = output.plan, .path = output.path, .write = output.write});
    if (!is_standard_output(output.path)) continue;
    file.open = [is_text = output.is_text] { return open_standard_output(is_text); };
    file.changes = identity_of("/dev/stdout");
  }
  return out;
}

WriteFilesOptions write_options(const CommonOptions& options, const std::string& folder) {
  const auto progress = [](bool is_stream) {
    return is_stream ? plain_progress() : interruptible_progress();
  };
  return {.sync = !options.no_sync,
          .warn = warn,
          .max_disk = options.max_disk,
          .folder = folder,
          .progress = progress};
}

/// Returns the memory in bytes that packing takes, if an output is packed. Files are written one after
/// another, so one packs at a time.
std::uint64_t memory_to_pack(const std::vector<Output>& outputs) noexcept {
  const bool packs = std::ranges::any_of(outputs, [](const Output& output) {
    return output.plan != nullptr && output.path.ends_with(kPackedSuffix) && !is_stream(output.path);
  });
  return packs ? packing_memory() : 0;
}

}  // namespace

bool is_standard_output(const std::string& path) { return path == "-" || leads_to_standard_output(path); }

Result<std::unique_ptr<Sink>> open_output(const std::string& path, const FileSinkOptions& options,
                                          bool is_text) {
  return is_standard_output(path) ? open_standard_output(is_text) : open_file_sink(path, options);
}

Progress interruptible_progress() {
  struct State {
    const CaughtInterrupts caught;
    ProgressBar bar;
  };
  return [state = std::make_shared<State>()](std::uint64_t done, std::uint64_t total) {
    state->bar.show(done, total);
    return !interrupted();
  };
}

std::uint64_t planned_memory(const std::vector<Output>& outputs) {
  std::vector<const FilePlan*> plans;
  for (const Output& output : outputs) {
    if (output.plan != nullptr) plans.push_back(output.plan);
  }
  return kOwnMemory + memory_to_write(plans) + memory_to_pack(outputs);
}

namespace {

/// Checks what is the command's own: the limit of memory, and that standard output takes one output.
Result<void> check_own(const std::vector<Output>& outputs, const CommonOptions& options) {
  // The data from which the plans were made is in memory too. With many small payloads it takes more than
  // they do.
  const std::uint64_t held = own_anonymous_memory() + memory_to_write({}) + memory_to_pack(outputs);
  const std::uint64_t memory = std::max(planned_memory(outputs), held);
  if (options.max_memory && memory > *options.max_memory) {
    return with_advice(
        make_error(ErrorCode::kTooLarge, "writing takes {} ({} bytes) of memory, over --max-memory {}",
                   readable_size(memory), memory, readable_size(*options.max_memory)),
        {text("--max-memory {} would fit", limit_for(memory))});
  }
  if (std::ranges::count_if(outputs, is_standard_output, &Output::path) > 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "two outputs are to be standard output; give each a name of its own");
  }
  return {};
}

}  // namespace

Result<void> check_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                           const std::string& folder) {
  ETSTREAM_TRY(check_own(outputs, options));
  return check_files(files_of(outputs), write_options(options, folder));
}

Result<void> write_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                           const std::string& folder) {
  ETSTREAM_TRY(check_own(outputs, options));
  let_writes_fail();
  const auto is_standard = [](const Output& output) { return is_standard_output(output.path); };
  if (std::ranges::any_of(outputs, is_standard)) leave_out_reports();
  ETSTREAM_TRY(write_files(files_of(outputs), write_options(options, folder)));
  have_appeared = std::ranges::any_of(
      outputs, [&](const Output& one) { return !is_standard(one) && !is_stream(one.path); });
  return {};
}

bool outputs_have_appeared() { return have_appeared; }

Result<void> write_output(const FilePlan& plan, const std::string& path, const CommonOptions& options) {
  return write_outputs({{&plan, path}}, options);
}

void warn(const Finding& warning) {
  complain("warning: {}\n", one_line(full_message(warning, option_words)));
}

void say_sizes(const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    say("{}: {}\n", output.path, readable_size(output.plan->size));
  }
}

void print(const Findings& findings, std::size_t most) {
  std::size_t found = 0;
  for (const Finding& error : findings.errors) {
    if (found++ < most) complain("error: {}\n", one_line(full_message(error, option_words)));
  }
  for (const Finding& warning : findings.warnings) {
    if (found++ < most) warn(warning);
  }
  if (found > most) complain("... and {}; --json lists all\n", counted(found - most, "more problem"));
}

FileSinkOptions file_options(bool sync) { return {.sync = sync, .warn = warn}; }

}  // namespace etstream::cli
