// SPDX-License-Identifier: BSD-3-Clause
#include "report/inspect_page_report.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/try.h"
#include "etstream/coded_size.h"
#include "etstream/inspect.h"
#include "etstream/verify.h"
#include "pages_generated.h"
#include "report/inspect_report.h"
#include "report/json_report.h"

namespace etstream {
namespace {

using Json = nlohmann::ordered_json;

/// Each as [kind, parent, offset, size, name, detail, others], without what is empty at the end: a file may
/// have a hundred thousand.
Json contents_to_json(const std::vector<FileContent>& contents) {
  Json out = Json::array();
  for (const FileContent& each : contents) {
    Json row = {static_cast<int>(each.kind), each.parent, each.offset, each.size};
    if (!each.name.empty()) row.push_back(each.name);
    if (!each.detail.empty() || each.others != 0) row.push_back(each.detail);
    if (each.others != 0) row.push_back(each.others);
    out.push_back(std::move(row));
  }
  return out;
}

Json kinds_to_json() {
  Json out = Json::array();
  for (int kind = 0; kind <= static_cast<int>(ContentKind::kOther); ++kind) {
    out.push_back(name_of(static_cast<ContentKind>(kind)));
  }
  return out;
}

/// With the places in `contents` instead of names.
Json groups_to_json(const std::vector<Duplicates>& groups, const std::vector<FileContent>& contents) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> places;
  for (std::uint32_t i = 1; i < contents.size(); ++i) places[{contents[i].offset, contents[i].size}] = i;
  Json out = Json::array();
  for (const Duplicates& group : groups) {
    Json found = Json::array();
    for (const std::uint64_t offset : group.offsets) found.push_back(places.at({offset, group.size}));
    out.push_back({{"size", group.size}, {"wasted", group.wasted()}, {"contents", std::move(found)}});
  }
  return out;
}

Json coded_to_json(const CodedSizes& coded) {
  Json out = {{"looked_at", coded.looked_at},
              {"saved", coded.saved},
              {"bytes_read", coded.bytes_read},
              {"contents", Json::array()}};
  for (const CodedSizes::One& one : coded.contents) out["contents"].push_back({one.content, one.size});
  return out;
}

Json methods_to_json(const FileInspection& found) {
  Json out = Json::array();
  for (std::size_t i = 0; i < found.methods.size(); ++i) {
    const MethodSummary& summary = found.program->methods[i];
    std::uint64_t memory = 0;
    for (const MethodSummary::Memory& each : summary.memories) memory += each.size;
    out.push_back({{"name", found.methods[i].name},
                   {"inputs", described(found.methods[i].inputs)},
                   {"outputs", described(found.methods[i].outputs)},
                   {"instructions", summary.instructions},
                   {"delegates", summary.delegates.size()},
                   {"memory", memory}});
  }
  return out;
}

}  // namespace

Result<FilePlan> plan_inspect_page(const ByteSource& file, const std::string& name) {
  ETSTREAM_ASSIGN(const FileInspection found, inspect(file, {.duplicates = true, .contents = true}));
  ETSTREAM_ASSIGN(const Findings findings, verify(file));
  ETSTREAM_ASSIGN(const CodedSizes coded, estimate_coded_sizes(file, found.contents));
  ETSTREAM_TRY(file.check_unchanged());
  const Json data = {{"name", name.substr(name.find_last_of('/') + 1)},
                     {"description", describe(found.format)},
                     {"version", found.version},
                     {"size", found.size},
                     {"kinds", kinds_to_json()},
                     {"contents", contents_to_json(found.contents)},
                     {"duplicates", groups_to_json(found.duplicates, found.contents)},
                     {"coded", coded_to_json(coded)},
                     {"methods", methods_to_json(found)},
                     {"metadata", found.metadata},
                     {"findings", findings_to_json(findings)}};
  const std::string page = filled_page(kInspectPage, json_text(data, -1));
  const std::span bytes = std::as_bytes(std::span(page));
  return plan_copy(ByteSource::owned({bytes.begin(), bytes.end()}), "page");
}

}  // namespace etstream
