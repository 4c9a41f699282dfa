// SPDX-License-Identifier: BSD-3-Clause
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>

#include "base/text.h"
#include "process/process_figures.h"

namespace etstream {
namespace {

/// A file of /proc, or as much of it as there is room for.
template <std::size_t kRoom>
class ProcFile {
 public:
  explicit ProcFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    for (ssize_t n = 1; n > 0 && size_ < kRoom; size_ += static_cast<std::size_t>(std::max<ssize_t>(n, 0))) {
      n = ::read(file, content_.data() + size_, kRoom - size_);
    }
    ::close(file);
  }
  [[nodiscard]] std::string_view content() const { return {content_.data(), size_}; }

 private:
  std::array<char, kRoom> content_;
  std::size_t size_ = 0;
};

template <class Number>
std::optional<Number> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// The number in the line that begins with `name`, such as "VmRSS:".
std::optional<std::uint64_t> number_of(std::string_view content, std::string_view name) {
  for (std::size_t at = 0; at < content.size();
       at = std::min(content.find('\n', at), content.size() - 1) + 1) {
    if (content.substr(at).starts_with(name))
      return number_at<std::uint64_t>(content.substr(at + name.size()));
  }
  return std::nullopt;
}

std::uint64_t bytes_of(std::string_view content, std::string_view name) {
  return number_of(content, name).value_or(0) << 10;
}

/// The entries of a folder that are numbers, such as threads.
std::vector<int> numbered_in(const std::string& path) {
  std::vector<int> found;
  const auto close = [](DIR* folder) { ::closedir(folder); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  if (!folder) return found;
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (const auto number = number_at<int>(entry->d_name)) found.push_back(*number);
  }
  return found;
}

}  // namespace

std::optional<ProcessMemory> memory_of(int process) {
  const ProcFile<4096> status(text("/proc/{}/status", process));
  // One that has ended and was not asked how has no memory.
  if (!number_of(status.content(), "VmRSS:")) return std::nullopt;
  ProcessMemory found;
  found.high_water = bytes_of(status.content(), "VmHWM:");
  found.resident = bytes_of(status.content(), "VmRSS:");
  found.anonymous = bytes_of(status.content(), "RssAnon:");
  found.file = bytes_of(status.content(), "RssFile:") + bytes_of(status.content(), "RssShmem:");
  return found;
}

std::optional<ProcessWork> work_of(int process) {
  const ProcFile<1024> stat(text("/proc/{}/stat", process));
  // The name, in parentheses, may have anything in it.
  const std::size_t end_of_name = stat.content().rfind(')');
  if (end_of_name == std::string_view::npos) return std::nullopt;
  std::string_view rest = stat.content().substr(end_of_name + 1);
  constexpr int kFieldsBeforeTimes = 11;  // from the state on
  for (int i = 0; i <= kFieldsBeforeTimes; ++i) {
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  }
  const auto user = number_at<std::uint64_t>(rest);
  const auto system = number_at<std::uint64_t>(rest.substr(std::min(rest.find(' '), rest.size())));
  if (!user || !system) return std::nullopt;
  ProcessWork found;
  found.cpu_seconds = static_cast<double>(*user + *system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const ProcFile<1024> io(text("/proc/{}/io", process));
  found.read = number_of(io.content(), "rchar:").value_or(0);
  found.written = number_of(io.content(), "wchar:").value_or(0);
  return found;
}

bool catches(int process, int signal) {
  constexpr std::string_view kCaught = "SigCgt:";
  const ProcFile<4096> status(text("/proc/{}/status", process));
  const std::size_t at = status.content().find(kCaught);
  if (at == std::string_view::npos) return false;
  std::string_view mask = status.content().substr(at + kCaught.size());
  mask.remove_prefix(std::min(mask.find_first_not_of(" \t"), mask.size()));
  std::uint64_t caught = 0;
  std::from_chars(mask.data(), mask.data() + mask.size(), caught, 16);
  return (caught >> (signal - 1) & 1U) != 0;
}

std::map<int, std::uint64_t> thread_times_of(int process) {
  std::map<int, std::uint64_t> found;
  for (const int thread : numbered_in(text("/proc/{}/task", process))) {
    const ProcFile<1024> times(text("/proc/{}/task/{}/schedstat", process, thread));
    found[thread] = number_at<std::uint64_t>(times.content()).value_or(0);
  }
  return found;
}

std::string command_line_of(int process) {
  const ProcFile<4096> file(text("/proc/{}/cmdline", process));
  std::string line(file.content());
  while (!line.empty() && line.back() == '\0') line.pop_back();
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

std::vector<int> children_of(int process) {
  std::vector<int> found;
  for (const int thread : numbered_in(text("/proc/{}/task", process))) {
    const ProcFile<65536> children(text("/proc/{}/task/{}/children", process, thread));
    std::string_view rest = children.content();
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

std::uint64_t page_cache() {
  const ProcFile<4096> memory("/proc/meminfo");
  return bytes_of(memory.content(), "Cached:");
}

}  // namespace etstream
