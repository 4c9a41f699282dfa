// SPDX-License-Identifier: BSD-3-Clause
//
// The reports of weights: the tensors that the payloads of a program are made of, and what programs share.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {
namespace {

std::string origin_text(const PayloadOrigin& origin) {
  if (origin.tensors.empty()) {
    if (!origin.constant.empty()) return text("no weights: {}", printable(origin.constant));
    if (origin.nearest.empty()) return "not explained";
    return text("not explained; tensors of as many elements, the nearest first: {}",
                names_text(origin.nearest));
  }
  std::string out;
  for (const TensorOrigin& tensor : origin.tensors) {
    out += (out.empty() ? "" : "; then ") + quote(tensor.tensor);
    for (const std::string& step : tensor.steps) out += ", " + step;
  }
  if (!origin.equals.empty()) out += text("; or the equal {}", names_text(origin.equals));
  if (!origin.constant.empty()) out += text("; or no weights: {}", printable(origin.constant));
  return out;
}

}  // namespace

void print_origins(const WeightOrigins& origins) {
  std::size_t explained = 0;
  for (const PayloadOrigin& each : origins.payloads) {
    if (each.is_explained()) ++explained;
    say("{:14}  {}{}{}\n{:16}{}\n", each.data.size(), printable(each.label), each.type.empty() ? "" : ", ",
        each.type, "", origin_text(each));
  }
  say("{} of {} explained", explained, counted(origins.payloads.size(), "payload"));
  if (!origins.unused.empty()) {
    say("; {} of the checkpoint not found: {}", counted(origins.unused.size(), "tensor"),
        names_text(origins.unused));
  }
  say("\n");
}

// Json finds these by their arguments, so they are in no namespace of their own.
ETSTREAM_TO_JSON(TensorOrigin, tensor, tensor.tensor, tensor.steps);

static void to_json(Json& out, const PayloadOrigin& each) {
  out = ETSTREAM_MEMBERS(each.label, each.name, each.file, each.offset, each.data.size(), each.type);
  out.update({{"explained", each.is_explained()},
              {"tensors", each.tensors},
              {"equals", each.equals},
              {"constant", unless_empty(each.constant)},
              {"nearest", each.is_explained() ? Json() : Json(each.nearest)}});
}

Json origins_to_json(const WeightOrigins& origins) {
  return {{"explained", origins.are_explained()}, {"payloads", origins.payloads}, {"unused", origins.unused}};
}

namespace {

/// The most items of a list that are printed; --json has all.
constexpr std::size_t kMostSharedRows = 10;

struct Sum {
  std::uint64_t count = 0;
  std::uint64_t size = 0;

  void add(std::uint64_t bytes) {
    ++count;
    size += bytes;
  }
};

std::uint64_t sum_of(const std::vector<SharingInput>& before) {
  std::uint64_t out = 0;
  for (const SharingInput& input : before) out += input.program.size();
  return out;
}

/// Returns the programs that take the data from the tensor data, by their indices.
std::set<std::uint32_t> sharers(const ProgramData& data) {
  std::set<std::uint32_t> out;
  for (const ProgramData::Use& use : data.uses) {
    if (!use.kept) out.insert(use.program);
  }
  return out;
}

std::string names_of(const std::set<std::uint32_t>& programs, const std::vector<SharingInput>& before) {
  std::string out;
  for (const std::uint32_t program : programs) {
    out += (out.empty() ? "" : ", ") + printable(before[program].name);
  }
  return out;
}

void print_row(const std::string& name, std::uint64_t before, std::uint64_t after) {
  say("{:14} {:14}  {}\n", before, after, printable(name));
}

void print_sizes(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan) {
  say("{:>14} {:>14}\n", "bytes before", "after");
  for (std::size_t i = 0; i < before.size(); ++i) {
    print_row(before[i].name, before[i].program.size(), plan.programs[i].size);
  }
  if (plan.weights) print_row("shared weights", 0, plan.weights->size);
  print_row("in all", sum_of(before), plan.size());
}

void print_shared(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan) {
  std::map<std::set<std::uint32_t>, Sum> sums;
  for (const ProgramData& data : plan.data) {
    if (!data.keys.empty()) sums[sharers(data)].add(data.size);
  }
  say("\nshared:{}\n", sums.empty() ? " nothing" : "");
  for (const auto& [programs, sum] : sums) {
    say("{:14}  in {}, of {}\n", sum.size, counted(sum.count, "piece"), names_of(programs, before));
  }
}

void print_kept(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan) {
  std::map<std::pair<std::uint32_t, KeptBecause>, Sum> sums;
  for (const ProgramData& data : plan.data) {
    for (const ProgramData::Use& use : data.uses) {
      if (use.kept && data.size > 0) sums[{use.program, *use.kept}].add(data.size);
    }
  }
  if (!sums.empty()) say("\nkept by the programs:\n");
  for (const auto& [place, sum] : sums) {
    say("{:14}  in {}, of {}: {}\n", sum.size, counted(sum.count, "piece"),
        printable(before[place.first].name), describe(place.second));
  }
}

void print_renamed(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan) {
  if (!plan.renamed.empty()) say("\nrenamed, as the name stands for other data too:\n");
  for (std::size_t i = 0; i < std::min(kMostSharedRows, plan.renamed.size()); ++i) {
    const RenamedKey& renamed = plan.renamed[i];
    say("  {}: {} is {}\n", printable(before[renamed.program].name), quote(renamed.name), quote(renamed.key));
  }
  if (plan.renamed.size() > kMostSharedRows) {
    say("  ... and {}\n", counted(plan.renamed.size() - kMostSharedRows, "more key"));
  }
}

/// The words for --json, one for each KeptBecause.
constexpr std::array kWordsOfKept = {"one_program", "small",    "other_data_under_key",
                                     "layout",      "delegate", "initial_state"};

}  // namespace

void print_sharing(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan) {
  print_sizes(before, plan);
  print_shared(before, plan);
  print_kept(before, plan);
  print_renamed(before, plan);
}

Json sharing_to_json(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan) {
  Json programs = Json::list();
  for (std::size_t i = 0; i < before.size(); ++i) {
    programs.push_back({{"name", before[i].name},
                        {"size_before", before[i].program.size()},
                        {"size_after", plan.programs[i].size}});
  }
  Json shared = Json::list();
  Json kept = Json::list();
  std::size_t keys = 0;
  for (const ProgramData& data : plan.data) {
    keys += data.keys.size();
    if (!data.keys.empty()) {
      Json names = Json::list();
      for (const std::uint32_t program : sharers(data)) names.push_back(before[program].name);
      shared.push_back({{"size", data.size}, {"programs", names}, {"keys", data.keys}});
    }
    for (const ProgramData::Use& use : data.uses) {
      if (!use.kept) continue;
      kept.push_back({{"program", before[use.program].name},
                      {"what", use.label},
                      {"size", data.size},
                      {"reason", kWordsOfKept.at(static_cast<std::size_t>(*use.kept))}});
    }
  }
  Json renamed = Json::list();
  for (const RenamedKey& each : plan.renamed) {
    renamed.push_back({{"program", before[each.program].name}, {"name", each.name}, {"key", each.key}});
  }
  Json out = {{"size_before", sum_of(before)},
              {"size_after", plan.size()},
              {"programs", programs},
              {"shared", shared},
              {"kept", kept},
              {"renamed", renamed}};
  if (plan.weights) out.add("weights", {{"size", plan.weights->size}, {"keys", keys}});
  return out;
}

}  // namespace etstream
