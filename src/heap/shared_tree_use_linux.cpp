// SPDX-License-Identifier: BSD-3-Clause
#include "heap/shared_tree_use_linux.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "heap/environment.h"

namespace etstream::heap {
namespace {

Error cannot_share() {
  return Error{ErrorCode::kOutOfMemory,
               text("cannot share memory with the command: {}", std::generic_category().message(errno)),
               errno};
}

}  // namespace

Result<SharedTreeUse> SharedTreeUse::make() {
  SharedTreeUse made;
  made.file_ = ::memfd_create("etstream-heap", MFD_CLOEXEC);
  if (made.file_ < 0 || ::ftruncate(made.file_, sizeof(TreeUse)) != 0) return cannot_share();
  void* const mapped = ::mmap(nullptr, sizeof(TreeUse), PROT_READ | PROT_WRITE, MAP_SHARED, made.file_, 0);
  if (mapped == MAP_FAILED) return cannot_share();
  made.tree_ = static_cast<TreeUse*>(mapped);
  // By this process's name for it: a command may close descriptors that it does not know.
  const std::string path = text("/proc/{}/fd/{}", ::getpid(), made.file_);
  ::setenv(kReportVariable, path.c_str(), 1);
  return made;
}

SharedTreeUse::SharedTreeUse(SharedTreeUse&& other) noexcept
    : file_(std::exchange(other.file_, -1)), tree_(std::exchange(other.tree_, nullptr)) {}

SharedTreeUse::~SharedTreeUse() {
  if (tree_ != nullptr) ::munmap(tree_, sizeof(TreeUse));
  if (file_ >= 0) ::close(file_);
}

}  // namespace etstream::heap
