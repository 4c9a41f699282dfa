// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/profile.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memory/process/process_watch.h"
#include "memory/profile/jump_watch.h"
#include "memory/profile/phase_log.h"
#include "memory/profile/phase_profiles.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::profile_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

MemorySample sample(std::uint64_t time, std::uint64_t anonymous) {
  MemorySample out;
  out.time = time;
  out.resident = out.high_water = anonymous + 10;
  out.anonymous = out.spilled = anonymous;
  out.file = 10;
  return out;
}

/// Makes an event at a time in seconds, with 10 bytes of files; the mark is that of the time before.
PhaseEvent event(bool begins, std::uint64_t time, std::uint64_t anonymous, std::uint64_t high_water,
                 std::string name = {}, std::int64_t thread = 7) {
  PhaseEvent out;
  out.begins = begins;
  out.process = 7;
  out.thread = thread;
  out.time = time * kSecond;
  out.memory.high_water = high_water;
  out.memory.anonymous = anonymous;
  out.memory.resident = anonymous + 10;
  out.memory.file = 10;
  out.cpu = time * kSecond / 2;
  out.read = 100 * time;
  out.written = 1000 * time;
  out.was_reset = true;
  out.name = std::move(name);
  return out;
}

/// Makes a process that runs from second 1 to 10 with 100 bytes, as it is seen every second.
WatchedProcess seen_process() {
  WatchedProcess out;
  out.process = 7;
  out.begin = 1 * kSecond;
  out.end = 10 * kSecond;
  for (std::uint64_t time = 1; time <= 10; ++time) out.memory.add(sample(time * kSecond, 100));
  return out;
}

Profile profile_of(std::vector<PhaseEvent> events) {
  Profile profile;
  add_profiles({seen_process()}, std::move(events), 1 * kSecond, profile);
  return profile;
}

TEST_CASE("what was in memory at most in a time is kept, in room that does not grow") {
  MemorySeries series;
  constexpr std::uint64_t kSamples = 100'000;
  for (std::uint64_t i = 0; i < kSamples; ++i) series.add(sample(i, i == 70'001 ? 5000 : i % 100));
  CHECK(series.samples().size() <= MemorySeries::kMost);
  CHECK(series.most(0, kSamples).anonymous == 5000);
  CHECK(series.most(0, kSamples).spilled == 5000);
  CHECK(series.most(70'001, 70'001).anonymous == 5000);
  CHECK(series.most(0, 60'000).anonymous == 99);
  CHECK(series.most(80'000, kSamples).anonymous == 99);
  CHECK(series.most(kSamples + 1000, kSamples + 2000).anonymous <= 99);
  CHECK(MemorySeries().most(0, 10).anonymous == 0);
}

TEST_CASE("a phase's beginning is read as it was told, and lines that are none are passed over") {
  const PhaseEvent told = event(true, 3, 100, 200, "lower\nall of it");
  const auto found = read_phase_log("rubbish\nB 1 2\nB 7x7 1 2 3 4 5 6 7 8 9 10 1 name\n" + line_of(told) +
                                    "E x\n" + "B 7 7 1 2 3 4 5 6 7 8 9 1 cut");
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "lower all of it");
  CHECK(found[0].begins);
  CHECK(found[0].was_reset);
  CHECK(found[0].time == told.time);
  CHECK(found[0].memory.high_water == 200);
  CHECK(found[0].written == told.written);
  CHECK(line_of(told) == "B 7 7 3000000000 200 110 100 10 1500000000 300 3000 0 1 lower all of it\n");
  CHECK(line_of(found[0]) == line_of(told));
  CHECK(line_of({}) == "E 0 0 0 0 0 0 0 0 0 0 0 0 \n");
}

TEST_CASE("a phase has the time, the work and the peak between its beginning and its end") {
  const Profile profile = profile_of({event(true, 3, 100, 110, "export"), event(false, 5, 150, 140)});
  REQUIRE(profile.phases.size() == 1);
  const PhaseProfile& phase = profile.phases[0];
  CHECK(phase.name == "export");
  CHECK(phase.start == 2.0);
  CHECK(phase.seconds == 2.0);
  CHECK(phase.cpu_seconds == 1.0);
  CHECK(phase.read == 200);
  CHECK(phase.written == 2000);
  CHECK(phase.anonymous_before == 100);
  CHECK(phase.peak.anonymous == 150);
  CHECK(phase.peak.resident == 160);
  CHECK(phase.ended);
}

TEST_CASE("phases from a second after a process's end on are those of a later one with its number") {
  WatchedProcess process = seen_process();
  process.runs = false;
  Profile profile;
  add_profiles({process},
               {event(true, 10, 100, 110, "own"), event(false, 11, 100, 110),
                event(true, 12, 100, 110, "later"), event(false, 13, 100, 110)},
               1 * kSecond, profile);
  REQUIRE(profile.phases.size() == 2);
  CHECK(profile.phases[0].name == "own");
  CHECK(profile.phases[0].ended);
  CHECK(profile.phases[1].name == "later");
  CHECK(profile.processes.size() == 1);
}

TEST_CASE("a spike that was not seen is in the mark of the phase that it was in, and in no other") {
  const Profile profile = profile_of({event(true, 2, 100, 110, "quiet"), event(false, 3, 100, 110),
                                      event(true, 4, 100, 110, "spike"), event(false, 5, 100, 2110),
                                      event(true, 6, 100, 110, "after"), event(false, 7, 100, 110)});
  REQUIRE(profile.phases.size() == 3);
  CHECK(profile.phases[0].peak.anonymous == 100);
  CHECK(profile.phases[1].peak.anonymous == 2100);
  CHECK(profile.phases[1].peak.resident == 2110);
  CHECK(profile.phases[2].peak.anonymous == 100);
  CHECK(profile.peak.anonymous == 2100);
  CHECK(profile.peak.file == 10);
  CHECK(profile.processes.at(0).peak.anonymous == 2100);
  CHECK(profile.processes.at(0).start == 0.0);
}

TEST_CASE("the peak of a phase counts for those that it lies in, not for its neighbours") {
  const Profile profile = profile_of({event(true, 2, 100, 110, "outer"), event(true, 2, 100, 110, "first"),
                                      event(false, 4, 100, 510), event(true, 4, 100, 110, "second"),
                                      event(false, 6, 100, 310), event(false, 7, 100, 110)});
  REQUIRE(profile.phases.size() == 3);
  CHECK(profile.phases[0].depth == 0);
  CHECK(profile.phases[0].peak.anonymous == 500);
  CHECK(profile.phases[1].depth == 1);
  CHECK(profile.phases[1].peak.anonymous == 500);
  CHECK(profile.phases[2].peak.anonymous == 300);
}

TEST_CASE("phases of two threads overlap and lie side by side") {
  const Profile profile = profile_of({event(true, 2, 100, 110, "a", 7), event(true, 3, 100, 110, "b", 8),
                                      event(false, 4, 100, 410, {}, 7), event(false, 5, 100, 610, {}, 8)});
  REQUIRE(profile.phases.size() == 2);
  CHECK(profile.phases[0].depth == 0);
  CHECK(profile.phases[1].depth == 0);
  CHECK(profile.phases[0].peak.anonymous == 400);
  CHECK(profile.phases[1].peak.anonymous == 600);
  CHECK(profile.phases[0].seconds == 2.0);
  CHECK(profile.phases[1].seconds == 2.0);
}

TEST_CASE("a phase in which the process ends lasts as long as that was seen") {
  const Profile profile = profile_of({event(true, 4, 100, 110, "endless")});
  REQUIRE(profile.phases.size() == 1);
  CHECK(!profile.phases[0].ended);
  CHECK(profile.phases[0].seconds == 6.0);
  CHECK(profile.phases[0].cpu_seconds == 0.0);  // the process was not seen to work
  CHECK(profile.phases[0].peak.anonymous == 100);
  WatchedProcess process = seen_process();
  process.work.cpu_seconds = 3.5;
  Profile worked;
  add_profiles({process}, {event(true, 4, 100, 110, "endless")}, 1 * kSecond, worked);
  CHECK(worked.phases.at(0).cpu_seconds == 1.5);
}

TEST_CASE("a mark that could not be reset is not taken for a phase's own, and a note says so") {
  PhaseEvent begin = event(true, 4, 100, 9010, "export");
  begin.was_reset = false;
  PhaseEvent end = event(false, 5, 100, 9010);
  end.was_reset = false;
  const Profile profile = profile_of({begin, end});
  CHECK(profile.phases.at(0).peak.anonymous == 100);
  CHECK(profile.peak.anonymous == 9000);
  REQUIRE(profile.notes.size() == 1);
  CHECK(profile.notes[0].find("does not let high-water marks be reset") != std::string::npos);
}

TEST_CASE(
    "phases of a process that was never seen are what it told, with those below it that ended meanwhile") {
  std::vector<PhaseEvent> events = {event(true, 4, 100, 110, "short"), event(false, 6, 200, 310)};
  for (PhaseEvent& each : events) each.process = 9;
  events[1].below = 5310;
  const Profile profile = profile_of(events);
  REQUIRE(profile.phases.size() == 1);
  CHECK(profile.phases[0].seconds == 2.0);
  CHECK(profile.phases[0].peak.anonymous == 300);
  CHECK(profile.phases[0].with_descendants.anonymous == 5300);
  CHECK(profile.phases[0].ended);
  CHECK(profile.processes.size() == 1);
  CHECK(profile.notes.empty());
}

TEST_CASE("what is over the limit is the innermost phase that took most, or the one that was asked for") {
  Profile profile =
      profile_of({event(true, 2, 100, 110, "outer"), event(true, 3, 100, 110, "first"),
                  event(false, 4, 100, 510), event(true, 4, 100, 110, "inner"),
                  event(true, 5, 100, 510, "low"), event(false, 6, 100, 110), event(false, 7, 100, 110),
                  event(false, 8, 100, 110), event(true, 8, 100, 110, "next"), event(false, 9, 100, 510)});
  const auto excess = find_excess(profile, 499);
  REQUIRE(excess);
  REQUIRE(excess->has_value());
  CHECK(excess->value().phase->name == "inner");
  CHECK(excess->value().anonymous == 500);
  CHECK(!find_excess(profile, 500)->has_value());
  CHECK(find_excess(profile, 499, "outer")->value().phase->name == "outer");
  CHECK(find_excess(profile, 1, "no such").error().code == ErrorCode::kNotFound);
  // Several processes together may take more than any phase: it is the largest of those at that time.
  profile.peak.anonymous = 700;
  CHECK(find_excess(profile, 600)->value().phase == nullptr);
  profile.samples = {{.time = 6.0, .anonymous = 600}, {.time = 7.5, .anonymous = 700}};
  CHECK(find_excess(profile, 600)->value().phase->name == "next");
  CHECK(find_excess(profile, 600)->value().anonymous == 700);
}

/// Makes process 7 with a child, 8, that has 500 bytes from second 4 to 5, and a mark of 900.
std::vector<WatchedProcess> processes_with_child() {
  WatchedProcess parent = seen_process();
  WatchedProcess child;
  child.process = 8;
  child.parent = 7;
  child.parent_at = 0;
  child.begin = 4 * kSecond;
  child.end = 5 * kSecond;
  for (std::uint64_t time = 1; time <= 10; ++time) {
    const bool is_there = time == 4 || time == 5;
    if (is_there) child.memory.add(sample(time * kSecond, 500));
    parent.with_descendants.add(sample(time * kSecond, is_there ? 600 : 100));
  }
  child.memory.add([] {
    MemorySample last = sample(5 * kSecond, 500);
    last.high_water = 910;
    return last;
  }());
  return {parent, child};
}

TEST_CASE("a phase has its process's own memory, and that with the processes below it") {
  Profile profile;
  add_profiles(
      processes_with_child(),
      {event(true, 3, 100, 110, "compile"), event(false, 6, 100, 110), event(true, 7, 100, 110, "link"),
       event(false, 8, 100, 110), event(true, 4, 100, 110, "while", 8), event(false, 5, 100, 110, {}, 8)},
      1 * kSecond, profile);
  REQUIRE(profile.phases.size() == 3);
  CHECK(profile.phases[0].peak.anonymous == 100);
  // The child's mark is not in the samples.
  CHECK(profile.phases[0].with_descendants.anonymous == 900);
  CHECK(profile.phases[1].name == "while");
  CHECK(profile.phases[1].with_descendants.anonymous == 900);
  CHECK(profile.phases[2].with_descendants.anonymous == 100);
  CHECK(find_excess(profile, 899)->value().phase->name == "while");
  CHECK(!find_excess(profile, 100, "link")->has_value());
  CHECK(find_excess(profile, 1, "no").error().message ==
        "there was no phase 'no', but 'compile', 'link', 'while'");
}

TEST_CASE("jumps are those of one process, with the phase that it was in") {
  Profile profile;
  const auto processes = [] {
    std::vector<WatchedProcess> out(2);
    for (int i = 0; i < 2; ++i) {
      out[static_cast<std::size_t>(i)].process = 7 + i;
      out[static_cast<std::size_t>(i)].begin = 1 * kSecond;
      out[static_cast<std::size_t>(i)].end = 4 * kSecond;
    }
    out[1].parent_at = 0;
    for (std::uint64_t time = 1; time <= 4; ++time) {
      out[0].memory.add(sample(time * kSecond, (time < 3 ? time * 100 : 50) << 20));
      out[1].memory.add(sample(time * kSecond, (time * 30) << 20));
    }
    return out;
  }();
  add_profiles(
      processes,
      {event(true, 1, 100, 110, "load"), event(false, 2, 100, 110), event(true, 2, 100, 110, "lower"),
       event(false, 4, 100, 110), event(true, 5, 100, 110, "save"), event(false, 6, 100, 110)},
      1 * kSecond, profile);
  add_jumps(processes, 1 * kSecond, profile);
  finish_jumps(processes, profile);
  REQUIRE(profile.jumps.size() == 2);
  CHECK(profile.jumps[0].process == 7);
  CHECK(profile.jumps[0].by == std::uint64_t{200} << 20);
  CHECK(profile.jumps[0].phase == "lower");
  CHECK(profile.jumps[1].process == 8);
  CHECK(profile.jumps[1].by == std::uint64_t{120} << 20);
  CHECK(profile.jumps[1].phase == "lower");
  CHECK(profile.jumps[1].time == 3.0);
}

TEST_CASE("a jump adds 1 MiB at least, and the 20 largest are kept") {
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto jumps_of = [](const std::vector<std::uint64_t>& sizes) {
    WatchedProcess process;
    std::uint64_t time = 0;
    const auto add = [&](std::uint64_t more) {
      process.memory.add(sample(++time * kSecond, 5 * kMiB + more));
    };
    for (const std::uint64_t size : sizes) {
      for (const std::uint64_t more : {std::uint64_t{0}, size, size}) add(more);
    }
    add(kMiB);
    Profile profile;
    add_jumps({process}, 1 * kSecond, profile);
    return profile.jumps;
  };
  const auto jumps = jumps_of({kMiB, kMiB - 1, kMiB, 3 * kMiB});
  REQUIRE(jumps.size() == 3);
  CHECK(jumps[0].by == 6 * kMiB);  // as before it there was nothing
  CHECK(jumps[0].begin == 0.0);
  CHECK(jumps[0].time == 2.0);
  CHECK(jumps[1].by == 3 * kMiB);
  CHECK(jumps[1].anonymous == 8 * kMiB);
  CHECK(jumps[2].by == kMiB);
  CHECK(jumps[2].begin == 6.0);
  CHECK(jumps[2].time == 8.0);
  CHECK(jumps_of(std::vector(25, kMiB)).size() == 20);

  WatchedProcess seen_once;
  seen_once.memory.add(sample(2 * kSecond, kMiB));
  Profile profile;
  add_jumps({seen_once}, 1 * kSecond, profile);
  REQUIRE(profile.jumps.size() == 1);
  CHECK(profile.jumps[0].by == kMiB);
}

TEST_CASE("there is no profile of no command") {
  Profile profile;
  CHECK(error_of(run_profiled({}, profile)) == "kInvalidArgument: there is no command to run");
  CHECK(error_of(run_in_phase({}, "export")) == "kInvalidArgument: there is no command to run");
}

TEST_CASE("a profile has the kernel's counts of the processes that ended") {
  Profile profile;
  REQUIRE(run_profiled({"true"}, profile));
  ::rusage ended{};
  REQUIRE(::getrusage(RUSAGE_CHILDREN, &ended) == 0);
  const auto seconds = [](const ::timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  CHECK(profile.cpu_seconds == doctest::Approx(seconds(ended.ru_utime) + seconds(ended.ru_stime)));
  CHECK(profile.cpu_seconds > 0);
  const std::uint64_t most = static_cast<std::uint64_t>(ended.ru_maxrss) << 10;
  CHECK(profile.peak.resident >= most);
  CHECK(profile.peak.resident < most + most / 2);
  CHECK(profile.notes.empty());  // the kernel tells which processes there were
}

TEST_CASE("blocks are repeated if their bytes are those of another, but not if these can't be read") {
  constexpr std::uint64_t kSize = heap::LargeBlocks::kSmallest;
  const std::vector<std::string> contents = {std::string(kSize, 'a'), std::string(kSize, 'a'),
                                             std::string(kSize, 'b')};
  const ::pid_t child = ::fork();  // which has them at the same addresses
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto blocks = std::make_unique<heap::LargeBlocks>();
  for (const std::string& content : contents) {
    blocks->add(child, std::bit_cast<std::uintptr_t>(content.data()), kSize, 1 * kSecond);
  }
  for (const std::uint64_t nowhere : {4096U, 8192U}) blocks->add(child, nowhere, kSize, 1 * kSecond);
  heap::LargeBlock& unset =
      *std::ranges::find_if(blocks->places, [](const auto& each) { return each.address.load() == 0; });
  unset.address.store(1);
  unset.process.store(child);
  unset.size.store(kSize);
  ProcessWatch watch;
  watch.look(::getpid(), 1 * kSecond, {{child, kSize}});
  BlockWatch kept;
  kept.look(watch, *blocks, 1 * kSecond);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  Profile profile;
  kept.add_blocks(1 * kSecond, profile);
  REQUIRE(profile.blocks.size() == 1);
  CHECK(profile.blocks[0].process == child);
  CHECK(profile.blocks[0].blocks == 5);
  CHECK(profile.blocks[0].size == 5 * kSize);
  CHECK(profile.blocks[0].repeated == 2 * kSize);
}

TEST_CASE("a process that has ended is one, however long its parent does not wait for it") {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::siginfo_t end;
  REQUIRE(::waitid(P_PID, static_cast<::id_t>(child), &end, WEXITED | WNOWAIT) == 0);
  ProcessWatch watch;
  for (std::uint64_t second = 1; second <= 3; ++second) watch.look(::getpid(), second * kSecond, {});
  ::waitpid(child, nullptr, 0);
  REQUIRE(watch.processes().size() == 1);
  CHECK(watch.processes()[0].process == child);
  CHECK(watch.has_seen(child));
  CHECK(!watch.runs(child));
}

TEST_CASE("what jumps added counts for the innermost line that is the user's own") {
  Profile profile;
  const auto jump = [](std::uint64_t by, std::vector<ProfileJump::Caller> callers) {
    ProfileJump out;
    out.by = by;
    out.callers = std::move(callers);
    return out;
  };
  const ProfileJump::Caller torch{"/usr/lib/python3/site-packages/torch/x.py", 1, "clone"};
  const ProfileJump::Caller own{"/home/a/export.py", 5, "main"};
  profile.jumps = {jump(10, {torch, own}), jump(5, {own}), jump(3, {{"<frozen importlib>", 2, "f"}, torch})};
  finish_jumps({}, profile);
  REQUIRE(profile.lines.size() == 1);
  CHECK(profile.lines[0].caller.file == "/home/a/export.py");
  CHECK(profile.lines[0].by == 15);
  CHECK(profile.lines[0].jumps == 2);
}

TEST_CASE("phases are compared where they are among those around them") {
  const auto phases = [](const std::vector<std::pair<std::uint32_t, std::string>>& named) {
    Profile out;
    for (const auto& [depth, name] : named) {
      PhaseProfile& phase = out.phases.emplace_back();
      phase.depth = depth;
      phase.name = name;
    }
    return out;
  };
  const Profile before =
      phases({{0, "load"}, {0, "lower"}, {1, "a"}, {1, "gone"}, {1, "b"}, {0, "save"}, {0, "last"}});
  const Profile after = phases({{0, "lower"}, {1, "b"}, {1, "a"}, {1, "new"}, {0, "load"}, {0, "save"}});
  std::vector<std::string> rows;
  for (const ComparedPhase& row : compare_phases(before, after)) {
    rows.push_back(std::string(row.depth, ' ') + row.name + (row.before != nullptr ? " <" : "") +
                   (row.after != nullptr ? " >" : ""));
  }
  CHECK(rows == std::vector<std::string>{"lower < >", " gone <", " b < >", " a < >", " new >", "load < >",
                                         "save < >", "last <"});
  // A file may tell of phases of any depth.
  std::vector<std::pair<std::uint32_t, std::string>> deep;
  for (std::uint32_t depth = 0; depth < 100'000; ++depth) deep.emplace_back(depth, "deeper");
  const auto compared = compare_phases(phases(deep), phases(deep));
  CHECK(compared.size() == deep.size());
  CHECK(std::ranges::max(compared, {}, &ComparedPhase::depth).depth == 256);
}

TEST_CASE("a profile is read back from its JSON, and other JSON is refused with its place") {
  const auto found = read_profile(source_of(
      R"({"seconds": 2, "cpu_seconds": 3, "spilled": 4, "exit_code": 5, "signal": 6, "later": {"x": null},
    "peak": {"anonymous": 7, "more": [1], "file": 5, "resident": 0},
    "samples": {"time": [7, 8.5], "anonymous": [0, 9], "file": [1]},
    "phases": [{"name": "export", "start": 3, "seconds": 1.5, "peak": {"anonymous": 5, "resident": 6}, "depth": 2,
    "process": 8, "with_descendants": {"anonymous": 9}}, {"depth": -1}, {"depth": 1000000}]})"));
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK(found->seconds == 2.0);
  CHECK(found->cpu_seconds == 3.0);
  CHECK(found->spilled == 4);
  CHECK(found->end.exit_code == 5);
  CHECK(found->end.signal == 6);
  REQUIRE(found->samples.size() == 2);
  CHECK(found->samples[1].time == 8.5);
  CHECK(found->samples[1].anonymous == 9);
  CHECK(found->phases[0].start == 3.0);
  CHECK(found->peak.anonymous == 7);
  CHECK(found->peak.file == 5);
  REQUIRE(found->phases.size() == 3);
  CHECK(found->phases[1].depth == 0);
  CHECK(found->phases[2].depth == 0);
  CHECK(found->phases[0].name == "export");
  CHECK(found->phases[0].seconds == 1.5);
  CHECK(found->phases[0].peak.resident == 6);
  CHECK(found->phases[0].with_descendants.anonymous == 9);
  CHECK(found->phases[0].depth == 2);
  CHECK(found->phases[0].process == 8);
  for (const auto* const wrong :
       {R"({"phases": []})", R"({"peak": {"anonymous": -1}})", R"({"peak": {"anonymous": 9e18}})",
        R"({"peak": 3})", R"([])", R"({"peak": {}, "phases": [{"name": 3}]})", "{"}) {
    CAPTURE(wrong);
    CHECK(!read_profile(source_of(wrong)));
  }
  CHECK(read_profile(source_of("{\n\"peak\": 3}")).error().message.find("line 2") != std::string::npos);
}

}  // namespace
}  // namespace etstream::profile_test
