// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "base/try.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "etstream/sink.h"

namespace etstream::cli {
namespace {

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

Result<void> write_output(const Layout& layout, const std::string& path, bool sync,
                          const std::vector<std::string>& inputs, bool is_text) {
  // The progress outlives the sink, which on an interrupt has a temporary file to remove.
  const Progress progress = is_stream(path) ? plain_progress() : interruptible_progress();
  ETSTREAM_ASSIGN(const auto sink, open_output(path, sync, inputs, is_text));
  return write(layout, *sink, progress);
}

void print(const Findings& findings) {
  for (const std::string& error : findings.errors) std::fprintf(stderr, "error: %s\n", error.c_str());
  for (const std::string& warning : findings.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

}  // namespace etstream::cli
