// SPDX-License-Identifier: BSD-3-Clause
//
// Marks a phase of a program that `etstream profile` or run_profiled() runs. For Linux.
//
//   const etstream::ProfiledPhase phase("lower");  // up to the end of its block
#pragma once

#include <string_view>

#include "etstream/export.h"

namespace etstream {

/// While it exists, its thread is in the phase; phases of a thread are nested. Does nothing if the program is
/// not profiled. Otherwise it resets the process's high-water mark of resident memory (VmHWM) and takes about
/// 50 us. Never fails.
class ETSTREAM_EXPORT ProfiledPhase {
 public:
  /// `name` is any text; line breaks in it become spaces.
  explicit ProfiledPhase(std::string_view name) noexcept;
  ProfiledPhase(const ProfiledPhase&) = delete;
  ProfiledPhase& operator=(const ProfiledPhase&) = delete;
  ~ProfiledPhase();
};

}  // namespace etstream
