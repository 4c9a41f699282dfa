// SPDX-License-Identifier: BSD-3-Clause
//
// A phase of a program that `etstream profile` runs, or run_profiled().
//
//   const etstream::ProfiledPhase phase("lower");  // up to the end of its block
#pragma once

#include <string_view>

#include "etstream/export.h"

namespace etstream {

/// For as long as it lives, its thread is in the phase; phases of a thread lie in each other. Where nobody
/// profiles the program it does nothing. It resets the process's high-water mark of resident memory (VmHWM),
/// and takes about 50 us. Never fails.
class ETSTREAM_EXPORT ProfiledPhase {
 public:
  /// `name` is any text; line breaks in it become spaces.
  explicit ProfiledPhase(std::string_view name) noexcept;
  ProfiledPhase(const ProfiledPhase&) = delete;
  ProfiledPhase& operator=(const ProfiledPhase&) = delete;
  ~ProfiledPhase();
};

}  // namespace etstream
