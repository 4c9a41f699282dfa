// SPDX-License-Identifier: BSD-3-Clause
//
// The folder that holds the heap's file. These functions may allocate: they run before the heap does.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "etstream/result.h"
#include "memory/heap/spill_file.h"

namespace etstream::heap {

/// Returns the error about a folder that can't hold the heap: kNotFound, kIo, or kInvalidArgument if folders
/// of its kind can't, or if a limit of the process's is too low.
[[nodiscard]] inline Error cannot_spill_to(const std::string& folder, const SpillError& failed) {
  if (failed.reason == nullptr) return system_error(failed.code, "large blocks can't lie in", folder);
  const LowLimit& limit = failed.limit;
  Error error{ErrorCode::kInvalidArgument,
              text("large blocks can't lie in {}: {}", quote(folder), failed.reason), failed.code};
  if (limit.name != nullptr) {
    error.message += text(": {} is {}, and the heap needs {} besides what the program does", limit.name,
                          readable_size(limit.set), readable_size(limit.needed));
    error.advice = {AdviceTerm::kRaiseLimit};
  }
  return error;
}

/// Returns the absolute path of `folder`. If it is empty: $TMPDIR, or /var/tmp, as /tmp is often in memory.
[[nodiscard]] inline Result<std::string> spill_folder(const std::string& folder) {
  const char* chosen = folder.c_str();
  if (folder.empty()) {
    const char* const temporary = std::getenv("TMPDIR");
    chosen = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  }
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(chosen, nullptr), std::free);
  if (whole == nullptr) return cannot_spill_to(chosen, {errno, nullptr});
  return std::string(whole.get());
}

}  // namespace etstream::heap
