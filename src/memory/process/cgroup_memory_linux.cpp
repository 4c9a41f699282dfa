// SPDX-License-Identifier: BSD-3-Clause
#include "memory/process/cgroup_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "memory/process/process_files_linux.h"

namespace etstream {
namespace {

namespace fs = std::filesystem;

/// A version of control groups: 2, or 1, whose groups of memory are in a folder of their own.
struct Version {
  const char* controllers;  // in the line of the process's group, between commas
  const char* folder;
};
constexpr Version kVersions[] = {
    {",,", "sys/fs/cgroup"}, {",,", "sys/fs/cgroup/unified"}, {",memory,", "sys/fs/cgroup/memory"}};
/// Version 1 has this limit, or one close to it, where there is none.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

/// Returns the path of this process's group: from the line "0::PATH" of version 2, or "N:memory:PATH".
std::optional<std::string> group_path(const fs::path& root, const char* wanted) {
  std::istringstream lines(content_of((root / "proc/self/cgroup").string(), 65536));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find(wanted) != std::string::npos) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Returns the folder that this process's group has in each version that there is.
std::vector<fs::path> own_groups(const fs::path& root) {
  std::vector<fs::path> out;
  for (const Version& version : kVersions) {
    const auto path = group_path(root, version.controllers);
    if (!path) continue;
    const fs::path top = root / version.folder;
    const fs::path group = (top / fs::path(*path).relative_path()).lexically_normal();
    std::error_code ignored;
    // In a container the path may be that of the host, which is not there: its root is the group then.
    out.push_back(fs::exists(group, ignored) ? group : top);
  }
  return out;
}

/// Reads the group's file: it has one name in version 2, and another one in version 1.
std::string content_of_either(const fs::path& group, const char* name, const char* name_of_version_1) {
  return content_of((group / name).string()) + content_of((group / name_of_version_1).string());
}

std::optional<CgroupMemory> read_group(const fs::path& group) {
  const auto kills = number_of(content_of_either(group, "memory.events", "memory.oom_control"), "oom_kill ");
  if (!kills) return std::nullopt;
  CgroupMemory out{0, *kills, (group / "memory.stat").string()};
  for (fs::path around = group;; around = around.parent_path()) {
    const auto limit = number_of(content_of_either(around, "memory.max", "memory.limit_in_bytes"), "");
    if (limit && *limit < kNoLimit && (out.limit == 0 || *limit < out.limit)) out.limit = *limit;
    if (around == around.parent_path()) return out;
  }
}

/// Moves a process into the group; 0 is this one. Returns false if that fails.
bool move_into(const fs::path& group, const std::string& process) {
  const Descriptor file(::open((group / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  return ::write(file.get(), process.data(), process.size()) > 0;
}

}  // namespace

std::optional<CgroupUse> cgroup_use(const std::string& file) {
  const std::string use = content_of(file, 65536);
  if (use.empty()) return std::nullopt;
  const auto bytes = [&](const char* name, const char* name_of_version_1) {
    const auto found = number_of(use, name_of_version_1);
    return (found ? found : number_of(use, name)).value_or(0);
  };
  return CgroupUse{bytes("anon ", "total_rss "), bytes("shmem ", "total_shmem ")};
}

std::optional<CgroupMemory> cgroup_memory(const std::string& root) {
  for (const fs::path& group : own_groups(root)) {
    if (auto found = read_group(group)) return found;
  }
  return std::nullopt;
}

CommandGroup::CommandGroup(bool makes_one) {
  if (!makes_one) return;
  for (const fs::path& own : own_groups("/")) {
    const fs::path made = own / text("etstream-{}", ::getpid());
    // Moving this process to where it is shows that it will be able to come back.
    if (!move_into(own, "0") || ::mkdir(made.c_str(), 0755) != 0) continue;
    // Before Linux 5.11, the limits of a group may not apply to those in it.
    const bool is_limited = content_of((made / "memory.use_hierarchy").string()) != "0\n";
    if (is_limited && read_group(made) && move_into(made, "0")) {
      own_ = own;
      made_ = made;
      return;
    }
    ::rmdir(made.c_str());
  }
}

CommandGroup::~CommandGroup() {
  if (made_.empty()) return;
  for (int i = 0; i < 100 && ::rmdir(made_.c_str()) != 0; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // some may be about to end
    std::istringstream left(content_of((made_ / "cgroup.procs").string(), 65536));
    for (std::string process; left >> process;) move_into(own_, process);
  }
}

void CommandGroup::leave() const {
  if (!made_.empty()) move_into(own_, "0");
}

CgroupMemory CommandGroup::memory() const {
  return (made_.empty() ? cgroup_memory() : read_group(made_)).value_or(CgroupMemory());
}

}  // namespace etstream
