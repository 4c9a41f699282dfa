// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "present/reports.h"
#include "printed.h"

namespace etstream::profile_report_test {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

std::string printed(const Profile& profile) {
  return printed_to(stderr, [&] { print_profile(profile); });
}

PhaseProfile phase(std::string name, std::int32_t process, std::uint32_t depth, std::uint64_t before,
                   std::uint64_t own, std::uint64_t all) {
  PhaseProfile out;
  out.name = std::move(name);
  out.process = process;
  out.depth = depth;
  out.seconds = 1.5;
  out.anonymous_before = before * kMebibyte;
  out.peak.anonymous = own * kMebibyte;
  out.with_descendants = {(all + 1) * kMebibyte, all * kMebibyte, 0};
  return out;
}

ProcessProfile process(std::int32_t number, std::string command, std::uint64_t peak, std::uint64_t last = 0) {
  ProcessProfile out;
  out.process = number;
  out.command = std::move(command);
  out.peak.anonymous = peak * kMebibyte;
  out.last_anonymous = last * kMebibyte;
  return out;
}

ProfileJump jump(std::int32_t process, std::uint64_t by, std::vector<ProfileJump::Caller> callers,
                 std::string name = "") {
  ProfileJump out;
  out.process = process;
  out.by = by * kMebibyte;
  out.callers = std::move(callers);
  out.phase = std::move(name);
  return out;
}

std::vector<ProfileJump::Caller> stack(int depth) {
  std::vector<ProfileJump::Caller> out;
  for (int i = 1; i <= depth; ++i) out.push_back({"a.py", i, "f" + std::to_string(i)});
  return out;
}

TEST_CASE("a profile is told by phases, processes, jumps, lines and blocks") {
  Profile profile;
  profile.seconds = 12.34;
  profile.cpu_seconds = 5.67;
  profile.peak = {300 * kMebibyte, 200 * kMebibyte, 100 * kMebibyte};
  profile.page_cache_growth = 7 * kMebibyte;
  profile.phases = {phase("export", 10, 0, 20, 50, 60), phase("lower", 10, 1, 60, 50, 90)};
  profile.phases[1].ended = false;
  profile.processes = {process(10, "python3 export.py", 50, 40), process(11, "idle", 0),
                       process(12, std::string(50, 'a') + "middle" + std::string(60, 'z'), 70)};
  profile.jumps = {jump(10, 3, stack(2), "lower"), jump(11, 4, stack(2)), jump(10, 2, stack(2)),
                   jump(10, 1, {})};
  profile.lines = {{{"a.py", 7, "main"}, 6 * kMebibyte, 2}};
  profile.blocks = {{10, stack(1), 9 * kMebibyte, 2, 4 * kMebibyte}, {11, {}, 8 * kMebibyte, 1, 0}};
  profile.notes = {"no page cache"};
  profile.end.signal = SIGKILL;
  CHECK(printed(profile) == R"(etstream profile: 12.3 s, 5.7 s of CPU, 3 processes
  at most: 200.0 MiB anonymous, 300.0 MiB resident; the page cache grew by 7.0 MiB
  signal 9 (Killed) ended the command; phase 'lower' of process 10 had not ended; process 10 had 40.0 MiB of anonymous memory when it was seen last: python3 export.py
  phase                                 process  anonymous        own      added   resident   seconds
  export                                     10   60.0 MiB   50.0 MiB   30.0 MiB   61.0 MiB       1.5
    lower ...                                10   90.0 MiB   50.0 MiB    0 bytes   91.0 MiB       1.5
  the largest processes:
    70.0 MiB       12 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ... zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz
    50.0 MiB       10 python3 export.py
     5.0 MiB were added by process 10
             f1, a.py:1
             f2, a.py:2
     4.0 MiB were added by process 11
             f1, a.py:1
             f2, a.py:2
     1.0 MiB were added by process 10
  added at lines of the script, and what they call:
     6.0 MiB  main, a.py:7
  in use at the peak, in blocks of 1 MiB and more:
     9.0 MiB in 2 blocks, 4.0 MiB of it in blocks that look like others, made by process 10
             f1, a.py:1
     8.0 MiB in 1 block, made by process 11 when nothing told of callers
  note: no page cache
)");

  profile.spilled = 5 * kMebibyte;
  profile.cgroup_growth = 6 * kMebibyte;
  profile.cgroup_limit = 400 * kMebibyte;
  profile.cgroup_kills = 2;
  profile.phases.clear();
  profile.processes.resize(1);
  profile.jumps.resize(1);
  profile.lines.clear();
  profile.blocks.clear();
  profile.end = {};
  CHECK(printed(profile) == R"(etstream profile: 12.3 s, 5.7 s of CPU, 1 process
  at most: 200.0 MiB anonymous, 300.0 MiB resident, 5.0 MiB spilled, of 400.0 MiB that the control group may have; the page cache grew by 7.0 MiB, the control group by 6.0 MiB
  the kernel killed 2 processes at the limit of the control group, 400.0 MiB; process 10 had 40.0 MiB of anonymous memory when it was seen last: python3 export.py
     3.0 MiB were added by process 10, in phase 'lower'
             f1, a.py:1
             f2, a.py:2
  note: no page cache
)");
}

TEST_CASE("long lists and commands are cut, and what is left out is counted") {
  Profile profile;
  for (int i = 0; i < 62; ++i) profile.phases.push_back(phase("p" + std::to_string(i), 1, 0, 0, 1, 1));
  for (int i = 1; i <= 6; ++i) {
    profile.processes.push_back(process(i, "c" + std::to_string(i), std::uint64_t(i)));
    profile.jumps.push_back(jump(1, std::uint64_t(i), {}));
    profile.blocks.push_back({1, {}, std::uint64_t(i) * kMebibyte, 1, 0});
  }
  for (int i = 1; i <= 9; ++i) profile.lines.push_back({{"a.py", i, "f"}, kMebibyte, 1});
  profile.processes[5].command = std::string(58, 'a') + std::string(58, 'z');
  profile.jumps[5].callers = stack(14);
  profile.jumps[4].callers = stack(13);
  const std::string all = printed(profile);
  const auto count = [&](const std::string& words) {
    std::size_t out = 0;
    for (std::size_t at = 0; (at = all.find(words, at)) != std::string::npos; ++at) ++out;
    return out;
  };
  CHECK(count("  p59 ") == 1);
  CHECK(count("  p60 ") == 0);
  CHECK(count("  ... and 2 more phases\n") == 1);
  CHECK(count(" aaaaaaaaaa") == 1);
  CHECK(count("aa ... aazz") == 1);
  CHECK(count("  2.0 MiB        2 c2\n") == 1);
  CHECK(count("        1 c1\n") == 0);
  CHECK(count(" were added by process 1\n") == 5);
  CHECK(count("f8, a.py:8\n             ... and 2 callers\n             f11, a.py:11\n") == 1);
  CHECK(count(", a.py:13\n") == 2);
  CHECK(count("MiB  f, a.py:") == 8);
  CHECK(count(" in 1 block, made by process 1") == 5);
}

TEST_CASE("how a command was ended is told, with the innermost phase that began last") {
  Profile profile;
  profile.cgroup_kills = 1;
  const std::string killed =
      "the kernel killed 1 process at the limit of the control group, which is not told";
  CHECK(end_of_command(profile) == killed);
  profile.end.signal = SIGHUP;
  profile.processes = {process(3, "c", 5)};
  profile.phases = {phase("a", 1, 1, 0, 0, 0), phase("b", 2, 1, 0, 0, 0), phase("c", 3, 0, 0, 0, 0)};
  for (PhaseProfile& each : profile.phases) each.ended = false;
  CHECK(end_of_command(profile) ==
        "signal 1 (Hangup) ended the command; " + killed + "; phase 'b' of process 2 had not ended");
  CHECK(failure_of(profile) == "killed by the kernel at its cgroup's limit");
  profile.cgroup_kills = 0;
  CHECK(failure_of(profile) == "signal 1 (Hangup) ended the command");
  profile.end = {.exit_code = 2, .signal = 0};
  CHECK(failure_of(profile) == "the command failed with exit code 2");
  profile.end = {};
  CHECK(failure_of(profile).empty());
}

TEST_CASE("profiles are compared by phase, in text and in a table") {
  Profile before;
  before.peak.anonymous = 100 * kMebibyte;
  before.seconds = 10;
  before.phases = {phase("export", 1, 0, 0, 30, 40), phase("_old_", 1, 1, 0, 30, 40)};
  Profile after = before;
  after.peak.anonymous = 140 * kMebibyte;
  after.phases[0].with_descendants.anonymous = 10 * kMebibyte;
  after.phases[1].name = "new";
  CHECK(printed_to(stdout, [&] { print_comparison(before, after); }) ==
        R"(anonymous, at most                       before      after             before, s  after, s
all                                   100.0 MiB  140.0 MiB   +40.0 MiB      10.0      10.0
export                                 40.0 MiB   10.0 MiB   -30.0 MiB       1.5       1.5
  new                                         -   40.0 MiB                     -       1.5
  _old_                                40.0 MiB          -                   1.5         -
)");
  CHECK(comparison_markdown(before, after) ==
        R"(| anonymous memory, at most | before | after | | before, s | after, s |
|---|--:|--:|--:|--:|--:|
| all | 100.0 MiB | 140.0 MiB | +40.0 MiB | 10.0 | 10.0 |
| export | 40.0 MiB | 10.0 MiB | -30.0 MiB | 1.5 | 1.5 |
| &nbsp;&nbsp;new | - | 40.0 MiB |  | - | 1.5 |
| &nbsp;&nbsp;\_old\_ | 40.0 MiB | - |  | 1.5 | - |
)");
  CHECK(comparison_markdown(before, before).find("| +0 bytes |") != std::string::npos);
  CHECK(comparison_markdown(before, after, {"one", "in phase 'a_b'"})
            .starts_with("**one**\n\n**in phase 'a\\_b'**\n\n| anonymous memory"));
}

}  // namespace
}  // namespace etstream::profile_report_test
