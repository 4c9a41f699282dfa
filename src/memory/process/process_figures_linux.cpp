// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/base/text.h"
#include "core/io/descriptor_posix.h"
#include "memory/process/process_figures.h"
#include "memory/process/process_files_linux.h"

namespace etstream {
namespace {

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

}  // namespace etstream
