// SPDX-License-Identifier: BSD-3-Clause
#include "memory/process/process_figures.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "test_files.h"

namespace etstream::cgroup_memory_test {
namespace {

/// A folder with proc and sys as a kernel shows them.
class System : public TemporaryFolder {
 public:
  void put(const std::string& file, const std::string& content) const {
    const std::filesystem::path place = std::filesystem::path(path()) / file;
    std::filesystem::create_directories(place.parent_path());
    put_file(place.string(), content);
  }
};

TEST_CASE("a group of version 2 has the lowest limit of those around it, and its own count of kills") {
  const System system;
  system.put("proc/self/cgroup", "0::/ci/job\n");
  system.put("sys/fs/cgroup/ci/memory.max", "2147483648\n");
  system.put("sys/fs/cgroup/ci/job/memory.max", "max\n");
  system.put("sys/fs/cgroup/ci/job/memory.events",
             "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n");
  const auto found = cgroup_memory(system.path());
  REQUIRE(found.has_value());
  CHECK(found->limit == 2147483648);
  CHECK(found->kills == 2);
  system.put("sys/fs/cgroup/ci/job/memory.max", "1073741824\n");
  CHECK(cgroup_memory(system.path())->limit == 1073741824);
}

TEST_CASE("a container whose group has the host's path is at the root") {
  const System system;
  system.put("proc/self/cgroup", "0::/docker/0123\n");
  system.put("sys/fs/cgroup/memory.max", "4096\n");
  system.put("sys/fs/cgroup/memory.events", "oom_kill 0\n");
  CHECK(cgroup_memory(system.path())->limit == 4096);
}

TEST_CASE("a group of version 1 is that of the memory controller, whose largest number is no limit") {
  const System system;
  system.put("proc/self/cgroup", "4:memory:/a\n2:cpu,cpuacct:/b\n0::/\n");
  system.put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  system.put("sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  const auto found = cgroup_memory(system.path());
  REQUIRE(found.has_value());
  CHECK(found->limit == 0);
  CHECK(found->kills == 1);
  const std::pair<const char*, std::uint64_t> limits[] = {
      {"1152921504606846975", 1152921504606846975}, {"1152921504606846976", 0}, {"0", 0}, {"5", 5}};
  for (const auto& [written, limit] : limits) {
    system.put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", written);
    CHECK(cgroup_memory(system.path())->limit == limit);
  }
}

TEST_CASE("a group's use is that of the groups in it too") {
  const System system;
  system.put("2", "anon 10\nfile 20\nshmem 3\n");
  system.put("1", "cache 1\nrss 2\nshmem 3\ntotal_cache 4\ntotal_rss 50\ntotal_shmem 6\n");
  CHECK(cgroup_use(system.path() + "/2")->anonymous == 10);
  CHECK(cgroup_use(system.path() + "/2")->shared == 3);
  CHECK(cgroup_use(system.path() + "/1")->anonymous == 50);
  CHECK(cgroup_use(system.path() + "/1")->shared == 6);
  CHECK(!cgroup_use(system.path() + "/0"));
}

TEST_CASE("a group is found behind any number of others") {
  const System system;
  std::string others;
  for (int i = 0; others.size() < 10'000; ++i) others += std::to_string(i) + ":name=x:/y\n";
  system.put("proc/self/cgroup", others + "0::/a\n");
  system.put("sys/fs/cgroup/a/memory.events", "oom_kill 4\n");
  CHECK(cgroup_memory(system.path())->kills == 4);
}

TEST_CASE("where there is no group there are no figures") {
  const System system;
  CHECK(!cgroup_memory(system.path()).has_value());
  system.put("proc/self/cgroup", "rubbish\n0::/../..\n1:memory\n");
  system.put("sys/fs/cgroup/memory/memory.oom_control", "oom_kill 5\n");
  CHECK(!cgroup_memory(system.path()).has_value());
}

}  // namespace
}  // namespace etstream::cgroup_memory_test
