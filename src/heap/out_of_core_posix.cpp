// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/out_of_core.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "base/try.h"
#include "heap/environment.h"
#include "heap/heap_posix.h"
#include "heap/out_of_core_environment.h"
#include "heap/spill_file.h"
#include "heap/spill_folder.h"
#include "process/command.h"

namespace etstream {
namespace {

#if defined(__APPLE__)
constexpr const char* kPreloadVariable = "DYLD_INSERT_LIBRARIES";
constexpr const char* kSeparators = ":";
constexpr const char* kSeparatorNames = "a colon";
#else
constexpr const char* kPreloadVariable = "LD_PRELOAD";
constexpr const char* kSeparators = " :";
constexpr const char* kSeparatorNames = "a space or a colon";
#endif

Result<std::string> usable_folder(const OutOfCoreOptions& options) {
  ETSTREAM_ASSIGN(std::string folder, heap::spill_folder(options.spill_folder));
  heap::SpillFile attempt;
  const heap::SpillError failed = attempt.open(folder.c_str(), heap::kSmallestSpan);
  attempt.close();
  if (failed) return heap::cannot_spill_to(folder, failed);
  return folder;
}

}  // namespace

Result<void> set_out_of_core_environment(const OutOfCoreOptions& options) {
  Result<std::string> folder = usable_folder(options);
  if (!folder) {
    // Other codes are for what is wrong with the command.
    folder.error().code = ErrorCode::kInvalidArgument;
    return std::move(folder).error();
  }
  if (::access(options.library.c_str(), R_OK) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 text("there is no {}, which serves the blocks", quote(options.library)), errno};
  }
  if (options.library.find_first_of(kSeparators) != std::string::npos) {
    return make_error(ErrorCode::kInvalidArgument, "the path of {} has {}, which {} can't have",
                      quote(options.library), kSeparatorNames, kPreloadVariable);
  }
  const char* const before = std::getenv(kPreloadVariable);
  const std::string preloaded =
      before != nullptr && *before != '\0' ? text("{}:{}", options.library, before) : options.library;
  ::setenv(kPreloadVariable, preloaded.c_str(), 1);
  ::setenv(heap::kFolderVariable, folder->c_str(), 1);
  ::setenv(heap::kLimitVariable, std::to_string(options.limit).c_str(), 1);
  ::setenv(heap::kFromVariable, std::to_string(std::max(options.from, heap::kGranule)).c_str(), 1);
  return {};
}

Error become_out_of_core(const std::vector<std::string>& command, const OutOfCoreOptions& options) {
  if (command.empty()) return make_error(ErrorCode::kInvalidArgument, "there is no command to run");
  if (auto set = set_out_of_core_environment(options); !set) return std::move(set).error();
  return become(command);
}

}  // namespace etstream
