// SPDX-License-Identifier: BSD-3-Clause

#include <nlohmann/json.hpp>

#include "pages_generated.h"
#include "present/reports.h"

namespace etstream {
// nlohmann-json finds these by their arguments, so they are in no namespace of their own.
static void to_json(Json& out, const PeakMemory& peak) {
  out = {{"resident", peak.resident}, {"anonymous", peak.anonymous}, {"file", peak.file}};
}

static void to_json(Json& out, const PhaseProfile& phase) {
  out = {{"name", phase.name},
         {"process", phase.process},
         {"depth", phase.depth},
         {"start", phase.start},
         {"seconds", phase.seconds},
         {"cpu_seconds", phase.cpu_seconds},
         {"anonymous_before", phase.anonymous_before},
         {"peak", phase.peak},
         {"with_descendants", phase.with_descendants},
         {"read", phase.read},
         {"written", phase.written},
         {"ended", phase.ended}};
}

static void to_json(Json& out, const ProcessProfile& process) {
  out = {{"process", process.process}, {"parent", process.parent},
         {"command", process.command}, {"start", process.start},
         {"seconds", process.seconds}, {"cpu_seconds", process.cpu_seconds},
         {"peak", process.peak},       {"last_anonymous", process.last_anonymous},
         {"read", process.read},       {"written", process.written}};
}

static void to_json(Json& out, const ProfileJump::Caller& caller) {
  out = {{"function", caller.function}, {"file", caller.file}, {"line", caller.line}};
}

static void to_json(Json& out, const ProfileJump& jump) {
  out = {{"process", jump.process},     {"phase", jump.phase}, {"begin", jump.begin},    {"time", jump.time},
         {"anonymous", jump.anonymous}, {"by", jump.by},       {"callers", jump.callers}};
}

static void to_json(Json& out, const ProfileLine& line) {
  out = {{"function", line.caller.function},
         {"file", line.caller.file},
         {"line", line.caller.line},
         {"by", line.by},
         {"jumps", line.jumps}};
}

static void to_json(Json& out, const ProfileBlocks& blocks) {
  out = {{"process", blocks.process},
         {"callers", blocks.callers},
         {"size", blocks.size},
         {"blocks", blocks.blocks},
         {"repeated", blocks.repeated}};
}

/// Returns the samples as a list for each of their members.
static Json columns_of(const std::vector<ProfileSample>& samples) {
  const auto none = Json::array();
  Json out = {{"time", none}, {"anonymous", none}, {"file", none}, {"spilled", none}};
  for (const ProfileSample& sample : samples) {
    out["time"].push_back(sample.time);
    out["anonymous"].push_back(sample.anonymous);
    out["file"].push_back(sample.file);
    out["spilled"].push_back(sample.spilled);
  }
  return out;
}

nlohmann::ordered_json profile_to_json(const Profile& profile) {
  return {{"command", profile.command},
          {"exit_code", profile.end.exit_code},
          {"signal", profile.end.signal},
          {"seconds", profile.seconds},
          {"cpu_seconds", profile.cpu_seconds},
          {"peak", profile.peak},
          {"spilled", profile.spilled},
          {"page_cache_growth", profile.page_cache_growth},
          {"cgroup_growth", profile.cgroup_growth},
          {"cgroup_limit", profile.cgroup_limit},
          {"cgroup_kills", profile.cgroup_kills},
          {"phases", profile.phases},
          {"processes", profile.processes},
          {"samples", columns_of(profile.samples)},
          {"jumps", profile.jumps},
          {"lines", profile.lines},
          {"blocks", profile.blocks},
          {"notes", profile.notes}};
}

std::string profile_page(const std::string& profile, const std::string* before,
                         const std::vector<std::uint64_t>& limits, const std::vector<std::string>& verdict) {
  Json shown = Json::parse(profile);
  if (before != nullptr) shown["before"] = Json::parse(*before);
  shown["limits"] = limits;
  shown["verdict"] = verdict;
  return filled_page(kProfilePage, json_text(shown));
}

}  // namespace etstream
