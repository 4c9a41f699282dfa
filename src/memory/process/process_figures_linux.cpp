// SPDX-License-Identifier: BSD-3-Clause
#include "memory/process/process_figures.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"

namespace etstream {
namespace {

/// Reads a file of the kernel, cut after `most` bytes; empty if it can't be read.
std::string content_of(const std::string& path, std::size_t most = 4096) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part;
  std::string content;
  while (content.size() < most) {
    const ssize_t n = ::read(file.get(), part.data(), std::min(part.size(), most - content.size()));
    if (n <= 0) break;
    content.append(part.data(), static_cast<std::size_t>(n));
  }
  return content;
}

template <class Number>
std::optional<Number> number_at(std::string_view text, int base = 10) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Returns the number behind `name`, such as "VmRSS:", in the line that begins with it.
std::optional<std::uint64_t> number_of(std::string_view content, std::string_view name, int base = 10) {
  while (!content.starts_with(name)) {
    const std::size_t end = content.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    content.remove_prefix(end + 1);
  }
  return number_at<std::uint64_t>(content.substr(name.size()), base);
}

std::uint64_t bytes_of(std::string_view content, std::string_view name) {
  return number_of(content, name).value_or(0) << 10;
}

/// Returns the fields of a process's stat from the one with this number on, counted from 1.
std::string_view fields_from(int number, std::string_view stat) {
  constexpr int kState = 3;  // the first one behind the name, which, in parentheses, may have anything in it
  stat.remove_prefix(std::min(stat.rfind(')'), stat.size()));
  for (int i = kState; i <= number; ++i) stat.remove_prefix(std::min(stat.find(' ') + 1, stat.size()));
  return stat;
}

/// Returns the entries of a folder that are numbers, such as threads.
std::vector<int> numbered_in(const std::string& path) {
  std::vector<int> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path, failed), end; entry != end; entry.increment(failed)) {
    if (const auto number = number_at<int>(entry->path().filename().native())) found.push_back(*number);
  }
  return found;
}

}  // namespace

std::optional<ProcessMemory> memory_of(int process) {
  const std::string status = content_of(text("/proc/{}/status", process));
  // A process that has ended and was not waited for has no memory.
  if (!number_of(status, "VmRSS:")) return std::nullopt;
  ProcessMemory found;
  found.high_water = bytes_of(status, "VmHWM:");
  found.resident = bytes_of(status, "VmRSS:");
  found.shared = bytes_of(status, "RssShmem:");
  found.anonymous = bytes_of(status, "RssAnon:") + found.shared;
  found.file = bytes_of(status, "RssFile:");
  return found;
}

std::optional<ProcessMemory> share_of(int process) {
  const std::string pages = content_of(text("/proc/{}/smaps_rollup", process));
  if (!number_of(pages, "Pss_Anon:")) return std::nullopt;
  ProcessMemory found;
  found.shared = bytes_of(pages, "Pss_Shmem:");
  found.anonymous = bytes_of(pages, "Pss_Anon:") + found.shared;
  return found;
}

bool is_copy(int process) {
  constexpr std::uint64_t kForkedWithoutExec = 0x40;  // PF_FORKNOEXEC
  const std::string stat = content_of(text("/proc/{}/stat", process));
  return (number_at<std::uint64_t>(fields_from(9, stat)).value_or(0) & kForkedWithoutExec) != 0;
}

std::uint64_t mappings_of(int process) {
  return static_cast<std::uint64_t>(
      std::ranges::count(content_of(text("/proc/{}/maps", process), 16 << 20), '\n'));
}

std::optional<ProcessWork> work_of(int process) {
  const std::string stat = content_of(text("/proc/{}/stat", process));
  const std::string_view rest = fields_from(14, stat);
  const auto user = number_at<std::uint64_t>(rest);
  const auto system = number_at<std::uint64_t>(rest.substr(std::min(rest.find(' '), rest.size())));
  if (!user || !system) return std::nullopt;
  ProcessWork found;
  found.cpu_seconds = static_cast<double>(*user + *system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string io = content_of(text("/proc/{}/io", process));
  found.read = number_of(io, "rchar:").value_or(0);
  found.written = number_of(io, "wchar:").value_or(0);
  return found;
}

bool catches(int process, int signal) {
  const std::string status = content_of(text("/proc/{}/status", process));
  const std::uint64_t caught = number_of(status, "SigCgt:", 16).value_or(0);
  return (caught >> (signal - 1) & 1U) != 0;
}

std::map<int, std::uint64_t> thread_times_of(int process) {
  std::map<int, std::uint64_t> found;
  for (const int thread : numbered_in(text("/proc/{}/task", process))) {
    const std::string times = content_of(text("/proc/{}/task/{}/schedstat", process, thread));
    found[thread] = number_at<std::uint64_t>(times).value_or(0);
  }
  return found;
}

std::string command_line_of(int process) {
  std::string line = content_of(text("/proc/{}/cmdline", process));
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

std::vector<int> children_of(int process) {
  std::vector<int> found;
  for (const int thread : numbered_in(text("/proc/{}/task", process))) {
    const std::string children = content_of(text("/proc/{}/task/{}/children", process, thread), 65536);
    std::string_view rest = children;
    while (const auto child = number_at<int>(rest)) {
      found.push_back(*child);
      rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    }
  }
  return found;
}

bool can_tell_children() {
  return ::access(text("/proc/self/task/{}/children", ::getpid()).c_str(), R_OK) == 0;
}

std::uint64_t page_cache() { return bytes_of(content_of("/proc/meminfo"), "Cached:"); }

std::uint64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

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
