// SPDX-License-Identifier: BSD-3-Clause
#include "memory/process/cgroup_memory.h"

#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "memory/process/process_files_linux.h"

namespace etstream {
namespace {

namespace fs = std::filesystem;

/// The files of a group: of version 2, and of version 1, whose groups of memory are in a folder of their own.
struct Version {
  const char* controllers;  // in the line of the process's group, between commas
  const char* folder;
  const char* limit;
  const char* events;
};
constexpr Version kVersions[] = {
    {",,", "sys/fs/cgroup", "memory.max", "memory.events"},
    {",,", "sys/fs/cgroup/unified", "memory.max", "memory.events"},
    {",memory,", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"}};
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

std::optional<CgroupMemory> read_group(const Version& version, const fs::path& root, const fs::path& group) {
  const std::string events = content_of((group / version.events).string());
  const auto kills = number_of(events, "oom_kill ");
  if (!kills) return std::nullopt;
  CgroupMemory out{0, *kills, (group / "memory.stat").string()};
  for (fs::path around = group;; around = around.parent_path()) {
    const auto limit = number_of(content_of((around / version.limit).string()), "");
    if (limit && *limit < kNoLimit && (out.limit == 0 || *limit < out.limit)) out.limit = *limit;
    if (around == root || around == around.parent_path()) return out;
  }
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
  for (const Version& version : kVersions) {
    const auto path = group_path(root, version.controllers);
    if (!path) continue;
    const fs::path top = fs::path(root) / version.folder;
    // In a container the path may be that of the host, which is not there: its root is the group then.
    for (const fs::path& group : {top / fs::path(*path).relative_path(), top}) {
      if (auto found = read_group(version, top, group.lexically_normal())) return found;
    }
  }
  return std::nullopt;
}

}  // namespace etstream
