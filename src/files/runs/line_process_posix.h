// SPDX-License-Identifier: BSD-3-Clause
//
// A process that reads and writes lines.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/descriptor_posix.h"
#include "etstream/result.h"

namespace etstream {

/// A function that returns whether to go on. It is called at least ten times a second; may be empty.
using GoOn = std::function<bool()>;

/// Ends the process, and those that it has started, when it is destroyed.
class LineProcess {
 public:
  /// Starts the command. Its standard input and output are the other end, and `files` are its descriptors 3,
  /// 4... Errors: kNotFound, kIo.
  [[nodiscard]] static Result<LineProcess> start(const std::vector<std::string>& command,
                                                 std::span<const int> files);
  LineProcess(LineProcess&& other) noexcept;
  LineProcess& operator=(LineProcess&&) = delete;
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;
  ~LineProcess();

  /// Sends `line`, which has no line end, and returns the line that is the answer. Errors: kInterrupted; kIo
  /// if the process ends before.
  [[nodiscard]] Result<std::string> ask(std::string_view line, const GoOn& go_on);
  /// Returns the next line.
  [[nodiscard]] Result<std::string> receive(const GoOn& go_on);

 private:
  LineProcess(::pid_t process, Descriptor socket) : process_(process), socket_(std::move(socket)) {}

  ::pid_t process_;
  Descriptor socket_;
  std::string received_;
};

}  // namespace etstream
