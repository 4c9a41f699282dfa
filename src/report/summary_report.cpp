// SPDX-License-Identifier: BSD-3-Clause
#include "report/summary_report.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/print.h"
#include "base/text.h"
#include "etstream/inspect.h"

namespace etstream {
namespace {

/// A person reads no more of a list; --json has all.
constexpr std::size_t kMostRows = 10;

struct BackendTotals {
  std::uint64_t delegates = 0;
  std::uint64_t calls = 0;
  std::uint64_t size = 0;
};

/// What is left of a list beyond the rows that are shown.
void print_more(std::size_t count, std::string_view noun) {
  if (count > kMostRows) say("    ... and %s\n", counted(count - kMostRows, noun).c_str());
}

void print_operators(const MethodSummary& method) {
  if (method.operators.empty()) return;
  say("  operators by calls:\n");
  for (std::size_t i = 0; i < std::min(kMostRows, method.operators.size()); ++i) {
    say("    %8" PRIu32 "  %s\n", method.operators[i].calls, printable(method.operators[i].name).c_str());
  }
  print_more(method.operators.size(), "more operator");
}

void print_delegates(const MethodSummary& method) {
  std::map<std::string, BackendTotals> backends;
  for (const MethodSummary::Delegate& delegate : method.delegates) {
    BackendTotals& backend = backends[delegate.backend];
    ++backend.delegates;
    backend.calls += delegate.calls;
    backend.size += delegate.size;
  }
  for (const auto& [name, backend] : backends) {
    say("  %s to %s, %s of data, %s\n", counted(backend.delegates, "delegate").c_str(),
        printable(name).c_str(), readable_size(backend.size).c_str(), counted(backend.calls, "call").c_str());
  }
}

void print_tensors(const MethodSummary& method) {
  if (method.tensors.empty()) return;
  say("  tensors by size:\n");
  for (std::size_t i = 0; i < std::min(kMostRows, method.tensors.size()); ++i) {
    const MethodSummary::Tensor& tensor = method.tensors[i];
    say("    %14" PRIu64 "  %-8s  %s%s%s\n", tensor.size, std::string(name_of(tensor.storage)).c_str(),
        describe(tensor.info).c_str(), tensor.name.empty() ? "" : " ", printable(tensor.name).c_str());
  }
  print_more(method.tensors.size(), "more tensor");
}

nlohmann::ordered_json method_to_json(const MethodSummary& method) {
  const auto none = nlohmann::ordered_json::array();
  nlohmann::ordered_json out = {{"name", method.name}, {"instructions", method.instructions},
                                {"operators", none},   {"delegates", none},
                                {"tensors", none},     {"memories", none}};
  for (const auto& called : method.operators) {
    out["operators"].push_back({{"name", called.name}, {"calls", called.calls}});
  }
  for (const auto& delegate : method.delegates) {
    out["delegates"].push_back({{"backend", delegate.backend},
                                {"size", delegate.size},
                                {"in_segment", delegate.in_segment},
                                {"index", delegate.index},
                                {"calls", delegate.calls}});
  }
  for (const auto& tensor : method.tensors) {
    out["tensors"].push_back({{"value", tensor.value},
                              {"name", tensor.name},
                              {"type", describe(tensor.info)},
                              {"storage", name_of(tensor.storage)},
                              {"size", tensor.size},
                              {"data_index", tensor.data_index},
                              {"memory_id", tensor.memory_id},
                              {"memory_offset", tensor.memory_offset}});
  }
  for (const auto& memory : method.memories) {
    out["memories"].push_back({{"id", memory.id},
                               {"size", memory.size},
                               {"tensors", memory.tensors},
                               {"tensor_bytes", memory.tensor_bytes}});
  }
  return out;
}

}  // namespace

void print_method(const MethodSummary& method) {
  say("  %s\n", counted(method.instructions, "instruction").c_str());
  print_operators(method);
  print_delegates(method);
  print_tensors(method);
  for (const MethodSummary::Memory& memory : method.memories) {
    say("  planned memory %" PRIu32 ": %s, for %s of %s\n", memory.id, readable_size(memory.size).c_str(),
        counted(memory.tensors, "tensor").c_str(), readable_size(memory.tensor_bytes).c_str());
  }
}

void print_totals(const ProgramSummary& summary) {
  say("\nflatbuffer %s, %s of %s, %s with %s of padding before them\n",
      readable_size(summary.flatbuffer_size).c_str(), counted(summary.constants, "constant").c_str(),
      readable_size(summary.constant_bytes).c_str(), counted(summary.segments.size(), "segment").c_str(),
      readable_size(summary.padding).c_str());
}

nlohmann::ordered_json summary_to_json(const ProgramSummary& summary) {
  const auto none = nlohmann::ordered_json::array();
  nlohmann::ordered_json out = {{"flatbuffer_size", summary.flatbuffer_size},
                                {"padding", summary.padding},
                                {"constants", summary.constants},
                                {"constant_bytes", summary.constant_bytes},
                                {"segments", none},
                                {"methods", none}};
  for (const ProgramSummary::Segment& entry : summary.segments) {
    out["segments"].push_back({{"use", entry.segment.use},
                               {"offset", entry.segment.offset},
                               {"size", entry.segment.size},
                               {"padding", entry.padding}});
  }
  for (const MethodSummary& method : summary.methods) out["methods"].push_back(method_to_json(method));
  return out;
}

}  // namespace etstream
