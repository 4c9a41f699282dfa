// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "cli/option_names.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "etstream/sink.h"

namespace etstream::cli {
namespace {

/// Two outputs at one path would leave one of them.
Result<void> check_apart(const std::vector<Output>& outputs) {
  std::set<std::filesystem::path> paths;
  for (const Output& output : outputs) {
    std::error_code ignored;
    if (paths.insert(std::filesystem::weakly_canonical(output.path, ignored)).second) continue;
    return make_error(ErrorCode::kInvalidArgument, "two outputs are to be ", quote(output.path),
                      "; give each a name of its own");
  }
  return {};
}

/// Whether an interrupt may end the process at once: a pipe or a device has nothing to put in order, and
/// opening it or writing to it may take for ever.
bool is_stream(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return is_standard_output(path) ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status));
}

Progress plain_progress() {
  return [bar = std::make_shared<ProgressBar>()](std::uint64_t done, std::uint64_t total) {
    bar->show(done, total);
    return true;
  };
}

}  // namespace

bool is_standard_output(std::string_view path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

Result<std::unique_ptr<Sink>> open_output(const std::string& path, bool sync,
                                          const std::vector<std::string>& inputs, bool is_text) {
  const bool to_standard_output = is_standard_output(path);
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (std::filesystem::equivalent(input, to_standard_output ? "/dev/stdout" : path, ignored)) {
      return make_error(ErrorCode::kInvalidArgument, "the output ", quote(path), " is the input ",
                        quote(input), "; give the output another name");
    }
  }
  if (to_standard_output) {
    if (!is_text && standard_output_is_a_terminal()) {
      return Error{ErrorCode::kInvalidArgument,
                   "the output is binary and not for a terminal; send it to a file or into a pipe"};
    }
    return open_descriptor_sink(kStandardOutput, "standard output");
  }
  return open_file_sink(path, {.sync = sync});
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

Result<void> write_outputs(const std::vector<Output>& outputs, bool sync,
                           const std::vector<std::string>& inputs) {
  ETSTREAM_TRY(check_apart(outputs));
  // The progress outlives the sinks, which on an interrupt have temporary files to remove.
  const bool is_plain = std::any_of(outputs.begin(), outputs.end(),
                                    [](const Output& output) { return is_stream(output.path); });
  const Progress progress = is_plain ? plain_progress() : interruptible_progress();
  std::vector<std::unique_ptr<Sink>> written;
  for (const Output& output : outputs) {
    ETSTREAM_ASSIGN(auto sink, open_output(output.path, sync, inputs, output.is_text));
    written.push_back(std::move(sink));
    ETSTREAM_TRY(write_uncommitted(*output.layout, *written.back(), progress));
  }
  for (const auto& sink : written) ETSTREAM_TRY(sink->commit());
  return {};
}

Result<void> write_output(const Layout& layout, const std::string& path, bool sync,
                          const std::vector<std::string>& inputs) {
  return write_outputs({{&layout, path}}, sync, inputs);
}

Result<void> require_sound(const std::string& path, const Findings& findings) {
  print(findings);
  if (findings.ok()) return {};
  return make_error(ErrorCode::kCorrupt, path, ": ", counted(findings.errors.size(), "error"));
}

void print(const Findings& findings) {
  const Findings worded = with_option_names(findings);
  for (const std::string& error : worded.errors) std::fprintf(stderr, "error: %s\n", error.c_str());
  for (const std::string& warning : worded.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

}  // namespace etstream::cli
