// SPDX-License-Identifier: BSD-3-Clause
#include "python/mapped_files_posix.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <ios>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "etstream/input_record.h"

namespace etstream::python {
namespace {

using Time = std::chrono::steady_clock::time_point;

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  FileIdentity file;
  std::string path;
};

/// From a line of /proc/self/maps: "BEGIN-END PERMISSIONS OFFSET MAJOR:MINOR INODE   PATH", in hexadecimal
/// but for the inode.
bool read_mapping(const std::string& line, Mapping& out) {
  std::istringstream words(line);
  std::string permissions;
  std::uint64_t offset = 0;
  unsigned major_number = 0;
  unsigned minor_number = 0;
  char dash = 0;
  char colon = 0;
  words >> std::hex >> out.begin >> dash >> out.end >> permissions >> offset >> major_number >> colon >>
      minor_number >> std::dec >> out.file.inode >> std::ws;
  out.file.device = makedev(major_number, minor_number);
  std::getline(words, out.path);
  return out.file.inode != 0;
}

struct Mappings {
  std::vector<Mapping> of_files;  // by address
  Time listed;                    // not before
};

Mappings list_mappings() {
  Mappings out;
  out.listed = std::chrono::steady_clock::now();
  std::ifstream lines("/proc/self/maps");
  for (std::string line; std::getline(lines, line);) {
    Mapping mapping;
    if (read_mapping(line, mapping)) out.of_files.push_back(std::move(mapping));
  }
  return out;
}

}  // namespace

bool is_mapping_of(std::span<const std::byte> memory, const FileIdentity& file, Time since) {
  static std::mutex mutex;
  static Mappings mappings;
  const std::lock_guard lock(mutex);
  if (mappings.listed <= since) mappings = list_mappings();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto first = std::partition_point(mappings.of_files.begin(), mappings.of_files.end(),
                                          [&](const Mapping& mapping) { return mapping.end <= begin; });
  for (auto mapping = first; mapping != mappings.of_files.end() && mapping->begin < begin + memory.size();
       ++mapping) {
    // Some file systems (btrfs, overlay) list another device, or file, than they tell of the path.
    if (mapping->file == file || identity_of(mapping->path) == file) return true;
  }
  return false;
}

}  // namespace etstream::python
