// SPDX-License-Identifier: BSD-3-Clause
#include "write_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

namespace {

constexpr std::uint64_t kStandardError = 2;

/// The argument by which a call names its file.
enum class Subject { kDescriptor, kPath, kPathAt };

struct Known {
  long number;
  const char* name;
  Subject subject;
  std::size_t argument;  // the descriptor's or the path's
  int size_argument;     // -1: none
};

constexpr Known kKnown[] = {
    {SYS_write, "write", Subject::kDescriptor, 0, 2},
    {SYS_pwrite64, "pwrite", Subject::kDescriptor, 0, 2},
    {SYS_writev, "writev", Subject::kDescriptor, 0, 2},
    {SYS_pwritev, "pwritev", Subject::kDescriptor, 0, 2},
    {SYS_pwritev2, "pwritev2", Subject::kDescriptor, 0, 2},
    {SYS_copy_file_range, "copy_file_range", Subject::kDescriptor, 2, 4},
    {SYS_sendfile, "sendfile", Subject::kDescriptor, 0, 3},
    {SYS_splice, "splice", Subject::kDescriptor, 2, 4},
    {SYS_ftruncate, "ftruncate", Subject::kDescriptor, 0, -1},
    {SYS_fallocate, "fallocate", Subject::kDescriptor, 0, -1},
    {SYS_fsync, "fsync", Subject::kDescriptor, 0, -1},
    {SYS_fdatasync, "fdatasync", Subject::kDescriptor, 0, -1},
    {SYS_syncfs, "syncfs", Subject::kDescriptor, 0, -1},
    {SYS_sync_file_range, "sync_file_range", Subject::kDescriptor, 0, -1},
    {SYS_fadvise64, "fadvise", Subject::kDescriptor, 0, -1},
    {SYS_fchmod, "fchmod", Subject::kDescriptor, 0, -1},
    {SYS_fchown, "fchown", Subject::kDescriptor, 0, -1},
    {SYS_fsetxattr, "fsetxattr", Subject::kDescriptor, 0, -1},
    {SYS_flock, "flock", Subject::kDescriptor, 0, -1},
    {SYS_utimensat, "utimensat", Subject::kPathAt, 1, -1},
    {SYS_fchmodat, "fchmodat", Subject::kPathAt, 1, -1},
    {SYS_fchownat, "fchownat", Subject::kPathAt, 1, -1},
    {SYS_renameat2, "renameat2", Subject::kPathAt, 3, -1},
    {SYS_linkat, "linkat", Subject::kPathAt, 3, -1},
    {SYS_symlinkat, "symlinkat", Subject::kPathAt, 2, -1},
    {SYS_unlinkat, "unlinkat", Subject::kPathAt, 1, -1},
    {SYS_mkdirat, "mkdirat", Subject::kPathAt, 1, -1},
    {SYS_truncate, "truncate", Subject::kPath, 0, -1},
#ifdef SYS_renameat
    {SYS_renameat, "renameat", Subject::kPathAt, 3, -1},
#endif
#ifdef __x86_64__
    {SYS_rename, "rename", Subject::kPath, 1, -1},
    {SYS_link, "link", Subject::kPath, 1, -1},
    {SYS_symlink, "symlink", Subject::kPath, 1, -1},
    {SYS_unlink, "unlink", Subject::kPath, 0, -1},
    {SYS_mkdir, "mkdir", Subject::kPath, 0, -1},
    {SYS_rmdir, "rmdir", Subject::kPath, 0, -1},
    {SYS_chmod, "chmod", Subject::kPath, 0, -1},
    {SYS_chown, "chown", Subject::kPath, 0, -1},
    {SYS_creat, "creat", Subject::kPath, 0, -1},
#endif
};

std::string read_path(pid_t process, std::uint64_t address) {
  std::string path;
  for (char c = 0; path.size() < 4096; path += c) {
    const iovec here{&c, 1};
    const iovec there{reinterpret_cast<void*>(address + path.size()), 1};
    if (::process_vm_readv(process, &here, 1, &there, 1, 0) != 1 || c == '\0') break;
  }
  return path;
}

std::string describe(pid_t process, const Known& known, const SystemCall& call) {
  const std::uint64_t argument = call.arguments[known.argument];
  return known.subject == Subject::kDescriptor ? "fd " + std::to_string(argument)
                                               : read_path(process, argument);
}

/// Adds the details that a replay of the calls needs.
void add_details(pid_t process, const SystemCall& call, WriteCall& out) {
  if (out.name == "rename") out.source = read_path(process, call.arguments[0]);
  if (out.name == "renameat" || out.name == "renameat2") out.source = read_path(process, call.arguments[1]);
  if (out.name == "unlinkat" && static_cast<int>(call.arguments[0]) != AT_FDCWD) {
    out.source = "fd " + std::to_string(call.arguments[0]);
  }
  if (out.name == "renameat2") out.flags = call.arguments[4];
  if (out.name == "fallocate") out.flags = call.arguments[1];
}

/// Returns the flags of a call that opens a file, and the path.
struct Open {
  std::uint64_t flags;
  std::uint64_t path;
};

std::optional<Open> as_open(const SystemCall& call) {
  if (call.number == SYS_openat) return Open{call.arguments[2], call.arguments[1]};
#ifdef SYS_open
  if (call.number == SYS_open) return Open{call.arguments[1], call.arguments[0]};
#endif
  return std::nullopt;
}

bool opens_for_writing(const Open& open) {
  return (open.flags & O_ACCMODE) != O_RDONLY || (open.flags & O_CREAT) != 0;
}

}  // namespace

std::optional<WriteCall> WriteCalls::recognise(pid_t process, const SystemCall& call) const {
  if (const auto open = as_open(call)) {
    // Folders are opened to find the files that an earlier run left, and to sync them.
    if (!opens_for_writing(*open) && (open->flags & O_DIRECTORY) == 0) return std::nullopt;
    return WriteCall{.name = opens_for_writing(*open) ? "open for writing" : "open a folder",
                     .about = read_path(process, open->path),
                     .size_argument = std::nullopt,
                     .source = "",
                     .flags = open->flags,
                     .opens_for_writing = opens_for_writing(*open)};
  }
  if (call.number == SYS_close && written_.contains(call.arguments[0])) {
    return WriteCall{.name = "close",
                     .about = "fd " + std::to_string(call.arguments[0]),
                     .size_argument = std::nullopt,
                     .source = "",
                     .happens_all_the_same = true};
  }
  const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) {
    return static_cast<std::uint64_t>(k.number) == call.number;
  });
  if (known == std::end(kKnown)) return std::nullopt;
  if (known->subject == Subject::kDescriptor && call.arguments[known->argument] == kStandardError) {
    return std::nullopt;
  }
  // This is advice on a file that is only read.
  if (call.number == SYS_fadvise64 && !written_.contains(call.arguments[0])) return std::nullopt;
  WriteCall out{.name = known->name,
                .about = describe(process, *known, call),
                .size_argument = std::nullopt,
                .source = ""};
  if (known->size_argument >= 0) out.size_argument = static_cast<std::size_t>(known->size_argument);
  add_details(process, call, out);
  return out;
}

void WriteCalls::note(const SystemCall& call, std::int64_t result) {
  if (call.number == SYS_close) {
    written_.erase(call.arguments[0]);
    return;
  }
  if (result < 0) return;
  const auto open = as_open(call);
  const bool duplicates =
      call.number == SYS_dup || call.number == SYS_dup3 ||
      (call.number == SYS_fcntl && (call.arguments[1] == F_DUPFD || call.arguments[1] == F_DUPFD_CLOEXEC));
  if ((open && opens_for_writing(*open)) || (duplicates && written_.contains(call.arguments[0]))) {
    written_.insert(static_cast<std::uint64_t>(result));
  }
}
