// SPDX-License-Identifier: BSD-3-Clause
//
// Where a command's output goes: a file that appears whole, or standard output.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/findings.h"
#include "etstream/layout.h"
#include "etstream/result.h"
#include "etstream/sink.h"
#include "etstream/write.h"

namespace etstream::cli {

/// Whether a path stands for standard output: -, or one of its names in /dev and /proc.
[[nodiscard]] bool is_standard_output(std::string_view path);

/// Writes `layout` to `path`, with a progress bar, until it is done or interrupted. One of `inputs`, a file
/// that the command reads, is refused as the output: it is likely a slip. So is a terminal, but for text.
[[nodiscard]] Result<void> write_output(const Layout& layout, const std::string& path, bool sync,
                                        const std::vector<std::string>& inputs);

/// What goes where.
struct Output {
  const Layout* layout = nullptr;
  std::string path;
  bool is_text = false;  // which may go to a terminal
};

/// The same for several files, none of which is there before all are written; then they come in this order.
[[nodiscard]] Result<void> write_outputs(const std::vector<Output>& outputs, bool sync,
                                         const std::vector<std::string>& inputs);

/// A sink to `path`, or to standard output. See write_output; `is_text` may go to a terminal.
[[nodiscard]] Result<std::unique_ptr<Sink>> open_output(const std::string& path, bool sync,
                                                        const std::vector<std::string>& inputs, bool is_text);

/// A progress function with a bar that stops where the process is interrupted, and that catches interrupts
/// for as long as it lives: before a temporary file is made, until it is gone.
[[nodiscard]] Progress interruptible_progress();

/// Prints the findings of `path`. Error: kCorrupt if there are errors among them.
[[nodiscard]] Result<void> require_sound(const std::string& path, const Findings& findings);

/// Each finding on a line of standard error.
void print(const Findings& findings);

}  // namespace etstream::cli
