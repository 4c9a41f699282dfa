// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "cli/option_words.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "core/base/size_limit.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/disk_limit.h"
#include "etstream/input_record.h"
#include "etstream/output_places.h"
#include "etstream/packed_file.h"
#include "etstream/sink.h"
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

/// Returns whether an interrupt may end the process at once: a pipe or a device has nothing to clean up, and
/// opening it or writing to it may take for ever.
bool is_stream(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return is_standard_output(path) ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
          !std::filesystem::is_directory(status));
}

/// A folder that is removed again, unless it was there before or its keep() is called.
class NewFolder {
 public:
  NewFolder(std::string path, bool is_new) : path_(std::move(path)), is_new_(is_new) {}
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (is_new_) std::filesystem::remove(path_, ignored);
  }

  void keep() noexcept { is_new_ = false; }

 private:
  const std::string path_;
  bool is_new_;
};

Progress plain_progress() {
  return [bar = std::make_shared<ProgressBar>()](std::uint64_t done, std::uint64_t total) {
    bar->show(done, total);
    return true;
  };
}

/// Refuses an output that the command has read.
Result<void> check_no_input(const std::string& path) {
  const InputRecord* const inputs = InputRecord::current();
  const auto file = identity_of(is_standard_output(path) ? "/dev/stdout" : path);
  return inputs != nullptr && file ? inputs->check_output_in_place(*file, path) : Result<void>();
}

/// Refuses an output that can't be made in its place. `folder` is made for the outputs in it, if it does not
/// exist.
Result<void> check_place(const Output& output, const std::filesystem::path& folder) {
  if (output.write || is_standard_output(output.path)) return {};
  std::error_code ignored;
  const auto place = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  };
  const std::filesystem::path made = folder.has_filename() ? folder : folder.parent_path();
  const bool is_in_new = !made.empty() && !std::filesystem::exists(made, ignored) &&
                         place(std::filesystem::path(output.path).parent_path()) == place(made);
  return check_file_sink(is_in_new ? made.string() : output.path);
}

/// Writes `output` up to its commit, and adds it to `out`.
Result<void> write_pending(const Output& output, bool sync, const Progress& progress,
                           std::vector<std::unique_ptr<PendingOutput>>& out) {
  if (output.write) {
    ETSTREAM_ASSIGN(out.emplace_back(), output.write(progress));
    return {};
  }
  ETSTREAM_ASSIGN(auto sink, open_output(output.path, file_options(sync), output.is_text));
  Sink& opened = *sink;
  out.push_back(std::move(sink));
  return write_uncommitted(*output.plan, opened, progress);
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

Result<void> check_apart(const std::vector<std::string>& paths) {
  OutputPlaces places;
  for (const std::string& path : paths) {
    ETSTREAM_TRY(places.add(is_standard_output(path) ? "/dev/stdout" : path));
  }
  return {};
}

Result<std::unique_ptr<Sink>> open_output(const std::string& path, const FileSinkOptions& options,
                                          bool is_text) {
  const bool to_standard_output = is_standard_output(path);
  ETSTREAM_TRY(check_no_input(path));
  if (to_standard_output) {
    if (!is_text && standard_output_is_a_terminal()) {
      return with_advice(
          make_error(ErrorCode::kInvalidArgument, "the output is binary and not for a terminal"),
          {"send it to a file or into a pipe"});
    }
    return open_descriptor_sink(kStandardOutput, "standard output");
  }
  return open_file_sink(path, options);
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

Result<void> check_outputs(const std::vector<Output>& outputs, const WriteOptions& options,
                           const std::string& folder) {
  std::vector<const FilePlan*> plans;
  std::vector<const FilePlan*> on_disk;
  for (const Output& output : outputs) {
    if (output.plan == nullptr) continue;
    plans.push_back(output.plan);
    if (!is_stream(output.path)) on_disk.push_back(output.plan);
  }
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
  ETSTREAM_TRY(check_disk(options.max_disk ? on_disk : plans, options.max_disk));
  std::vector<std::string> paths;
  for (const Output& output : outputs) {
    if (output.path.empty()) continue;
    ETSTREAM_TRY(check_no_input(output.path));
    ETSTREAM_TRY(check_place(output, folder));
    paths.push_back(output.path);
  }
  return check_apart(paths);
}

Result<void> write_outputs(const std::vector<Output>& outputs, const WriteOptions& options,
                           const std::string& folder) {
  ETSTREAM_TRY(check_outputs(outputs, options, folder));
  let_writes_fail();
  if (std::ranges::any_of(outputs, is_standard_output, &Output::path)) leave_out_reports();
  const bool sync = !options.no_sync;
  std::vector<const Output*> files;
  // Streams come first: what has gone there can't be taken back. An interrupt, which ends the process at once
  // while it waits for a reader, then leaves no temporary file.
  for (const Output& output : outputs) {
    if (!is_stream(output.path)) {
      files.push_back(&output);
      continue;
    }
    std::vector<std::unique_ptr<PendingOutput>> stream;
    ETSTREAM_TRY(write_pending(output, sync, plain_progress(), stream));
    ETSTREAM_TRY(commit_together(stream));
  }
  if (files.empty()) return {};
  // The progress outlives the sinks, which on an interrupt have temporary files to remove.
  const Progress progress = interruptible_progress();
  ETSTREAM_ASSIGN(const bool is_new, folder.empty() ? false : make_folder(folder, {.sync = sync}));
  NewFolder made(folder, is_new);
  std::vector<std::unique_ptr<PendingOutput>> written;
  for (const Output* const output : files) {
    ETSTREAM_TRY(write_pending(*output, sync, progress, written));
    if (files.size() > 1) ETSTREAM_TRY(written.back()->prepare());
  }
  ETSTREAM_TRY(commit_together(written));
  made.keep();
  have_appeared = true;
  return {};
}

bool outputs_have_appeared() { return have_appeared; }

Result<void> write_output(const FilePlan& plan, const std::string& path, const WriteOptions& options) {
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
