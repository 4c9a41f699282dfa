// SPDX-License-Identifier: BSD-3-Clause
//
// The system calls that change files, as a tracer sees them.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

/// A system call that is about to be made.
struct SystemCall {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 6> arguments{};
};

/// A call in the tests' terms, with what they need of it.
struct WriteCall {
  std::string name;                          // as in the manual: "openat"
  std::string about;                         // the path, or "fd 3"
  std::optional<std::size_t> size_argument;  // which argument says how much is to be written
  std::string source;       // the path that is renamed, the "fd 3" that a path to remove is relative to
  std::uint64_t flags = 0;  // of open, renameat2 and fallocate
  bool opens_for_writing = false;
  bool happens_all_the_same = false;  // a close that fails has closed
};

/// Tells the calls that change files from the others. Remembers the descriptors that are written to.
class WriteCalls {
 public:
  /// Returns the call if it changes a file or makes a change durable. Returns nothing for all others, and for
  /// output to standard error.
  [[nodiscard]] std::optional<WriteCall> recognise(pid_t process, const SystemCall& call) const;
  /// Notes each call and its result.
  void note(const SystemCall& call, std::int64_t result);

 private:
  std::set<std::uint64_t> written_ = {1};
};
