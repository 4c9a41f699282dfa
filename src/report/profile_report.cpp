// SPDX-License-Identifier: BSD-3-Clause
#include "report/profile_report.h"

#include <nlohmann/json.hpp>

#include "pages_generated.h"
#include "report/json_report.h"
#include "report/page.h"

namespace etstream {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const PeakMemory& peak) {
  return {{"resident", peak.resident}, {"anonymous", peak.anonymous}, {"file", peak.file}};
}

Json to_json(const PhaseProfile& phase) {
  return {{"name", phase.name},
          {"process", phase.process},
          {"depth", phase.depth},
          {"start", phase.start},
          {"seconds", phase.seconds},
          {"cpu_seconds", phase.cpu_seconds},
          {"anonymous_before", phase.anonymous_before},
          {"peak", to_json(phase.peak)},
          {"read", phase.read},
          {"written", phase.written},
          {"ended", phase.ended}};
}

Json to_json(const ProcessProfile& process) {
  return {{"process", process.process},    {"parent", process.parent},   {"command", process.command},
          {"start", process.start},        {"seconds", process.seconds}, {"cpu_seconds", process.cpu_seconds},
          {"peak", to_json(process.peak)}, {"read", process.read},       {"written", process.written}};
}

Json to_json(const ProfileJump& jump) {
  Json out = {{"process", jump.process},
              {"time", jump.time},
              {"anonymous", jump.anonymous},
              {"by", jump.by},
              {"callers", Json::array()}};
  for (const ProfileJump::Caller& caller : jump.callers) {
    out["callers"].push_back({{"function", caller.function}, {"file", caller.file}, {"line", caller.line}});
  }
  return out;
}

Json to_json(const std::vector<ProfileSample>& samples) {
  Json out = {{"time", Json::array()},
              {"anonymous", Json::array()},
              {"file", Json::array()},
              {"spilled", Json::array()}};
  for (const ProfileSample& sample : samples) {
    out["time"].push_back(sample.time);
    out["anonymous"].push_back(sample.anonymous);
    out["file"].push_back(sample.file);
    out["spilled"].push_back(sample.spilled);
  }
  return out;
}

template <class Entry>
Json all_to_json(const std::vector<Entry>& entries) {
  Json out = Json::array();
  for (const Entry& entry : entries) out.push_back(to_json(entry));
  return out;
}

}  // namespace

nlohmann::ordered_json profile_to_json(const Profile& profile) {
  return {{"command", profile.command},
          {"exit_code", profile.end.exit_code},
          {"signal", profile.end.signal},
          {"seconds", profile.seconds},
          {"cpu_seconds", profile.cpu_seconds},
          {"peak", to_json(profile.peak)},
          {"spilled", profile.spilled},
          {"page_cache_growth", profile.page_cache_growth},
          {"phases", all_to_json(profile.phases)},
          {"processes", all_to_json(profile.processes)},
          {"samples", to_json(profile.samples)},
          {"jumps", all_to_json(profile.jumps)},
          {"notes", profile.notes}};
}

std::string profile_page(const Profile& profile) {
  return filled_page(kProfilePage, json_text(profile_to_json(profile)));
}

nlohmann::ordered_json profile_trace(const Profile& profile) {
  Json events = Json::array();
  const auto microseconds = [](double seconds) { return seconds * 1e6; };
  for (const ProcessProfile& process : profile.processes) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", process.process},
                      {"args", {{"name", process.command}}}});
  }
  for (const PhaseProfile& phase : profile.phases) {
    events.push_back({{"ph", "X"},
                      {"name", phase.name},
                      {"pid", phase.process},
                      {"tid", phase.process},
                      {"ts", microseconds(phase.start)},
                      {"dur", microseconds(phase.seconds)},
                      {"args", {{"peak", to_json(phase.peak)}, {"cpu_seconds", phase.cpu_seconds}}}});
  }
  const std::int32_t whole = profile.processes.empty() ? 0 : profile.processes.front().process;
  for (const ProfileSample& sample : profile.samples) {
    events.push_back(
        {{"ph", "C"},
         {"name", "memory, all processes"},
         {"pid", whole},
         {"ts", microseconds(sample.time)},
         {"args", {{"anonymous", sample.anonymous}, {"file", sample.file}, {"spilled", sample.spilled}}}});
  }
  return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
}

}  // namespace etstream
