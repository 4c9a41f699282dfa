// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spill_folder.h"

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "io/descriptor_posix.h"

namespace etstream::heap {

Result<std::string> spill_folder(const std::string& folder) {
  const char* chosen = folder.c_str();
  if (folder.empty()) {
    const char* const temporary = std::getenv("TMPDIR");
    chosen = temporary != nullptr && *temporary != '\0' ? temporary : "/var/tmp";
  }
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(chosen, nullptr), std::free);
  if (whole == nullptr) return cannot_spill_to(chosen, {errno, nullptr});
  return std::string(whole.get());
}

Error cannot_spill_to(const std::string& folder, const SpillError& failed) {
  if (failed.reason == nullptr) return system_error(failed.code, "large blocks can't lie in", folder);
  return Error{ErrorCode::kInvalidArgument,
               text("large blocks can't lie in {}: {}", quote(folder), failed.reason), failed.code};
}

}  // namespace etstream::heap
