// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/text.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream {

// These functions turn the items of lists into JSON. nlohmann-json finds them by their arguments, so they are
// in no namespace of their own.
static void to_json(Json& out, const AllocatorBudget& budget) {
  out = {{"method_allocator", budget.method_allocator()},
         {"values", budget.values},
         {"tensors", budget.tensors},
         {"lists", budget.lists},
         {"delegates", budget.delegates},
         {"backends", budget.backends},
         {"calls", budget.calls},
         {"load_temp", budget.load_temp}};
}

static void to_json(Json& out, const MethodBudget::Planned& planned) {
  out = {{"id", planned.id}, {"size", planned.size}, {"used", planned.used}};
}

static void to_json(Json& out, const MethodBudget::Delegate& delegate) {
  out = {{"backend", delegate.backend},
         {"size", delegate.size},
         {"in_segment", delegate.in_segment},
         {"is_known", delegate.is_known}};
  if (!delegate.ethos_u) return;
  const auto& [commands, weights, scratch] = *delegate.ethos_u;
  if (commands) out["commands"] = *commands;
  if (weights) out["weights"] = *weights;
  if (scratch) out["scratch"] = *scratch;
}

static void to_json(Json& out, const MethodBudget::Ends& ends) {
  out = {{"count", ends.count}, {"size", ends.size}, {"provided", ends.provided}};
}

static void to_json(Json& out, const MethodBudget& method) {
  out = {{"name", method.name},
         {"bits_64", method.bits_64},
         {"bits_32", method.bits_32},
         {"run_temp", method.run_temp},
         {"kernel_calls", method.kernel_calls},
         {"planned", method.planned},
         {"delegates", method.delegates},
         {"inputs", method.inputs},
         {"outputs", method.outputs}};
}

static void to_json(Json& out, const CaseBudget& cases) {
  out = {{"method", cases.method},
         {"test_cases", cases.test_cases},
         {"inputs", cases.inputs},
         {"expected_outputs", cases.expected_outputs}};
}

Json budget_to_json(const std::string& file, const MemoryBudget& budget) {
  return {{"file", file},
          {"size", budget.file_size},
          {"alignment", budget.file_alignment},
          {"flatbuffer_size", budget.flatbuffer_size},
          {"constants_size", budget.constants_size},
          {"external_keys", budget.external_keys},
          {"methods", budget.methods},
          {"suites", budget.cases}};
}

namespace {

/// Returns a sentence for each amount that the file does not say.
std::vector<std::string> unsaid(const MemoryBudget& budget) {
  std::vector<std::string> out;
  if (budget.external_keys != 0) {
    out.push_back(text("the data of {} is to come from tensor data files, which take memory of their own",
                       counted(budget.external_keys, "key")));
  }
  for (const MethodBudget& method : budget.methods) {
    const std::string name = printable(method.name);
    if (std::ranges::find(method.delegates, "XnnpackBackend", &MethodBudget::Delegate::backend) !=
        method.delegates.end()) {
      out.push_back(
          text("{}: XnnpackBackend takes more from the heap, for the weights that it packs too", name));
    }
    for (const std::string& backend : method.unknown_backends()) {
      out.push_back(text("{}: {} takes more from the method allocator, and maybe from the temp allocator",
                         name, printable(backend)));
    }
    if (method.kernel_calls == 0) continue;
    out.push_back(text("{}: kernels may take more from the temp allocator, in {}", name,
                       counted(method.kernel_calls, "call")));
  }
  return out;
}

void print_allocators(const MethodBudget& method) {
  const AllocatorBudget& wide = method.bits_64;
  const AllocatorBudget& narrow = method.bits_32;
  const auto row = [](std::string_view what, std::uint64_t on_64, std::uint64_t on_32) {
    say("  {:24}{:>14}{:>14}\n", what, on_64, on_32);
  };
  row("method allocator", wide.method_allocator(), narrow.method_allocator());
  row("  values", wide.values, narrow.values);
  row("  tensors", wide.tensors, narrow.tensors);
  row("  lists", wide.lists, narrow.lists);
  row("  delegates", wide.delegates, narrow.delegates);
  row("  backends", wide.backends, narrow.backends);
  row("  calls", wide.calls, narrow.calls);
  row("temp allocator to load", wide.load_temp, narrow.load_temp);
  row("temp allocator to run", method.run_temp, method.run_temp);
}

/// Returns the meaning that Arm's runner gives to a memory beyond the first.
std::string_view region_of(std::uint32_t id) {
  return id == 2 ? ", slow in Arm's runner" : id == 3 ? ", fast in Arm's runner" : "";
}

void print_ends(std::string_view what, const MethodBudget::Ends& ends) {
  say("  {} {} of {} bytes, {} of them in the caller's buffers\n", ends.count, what, ends.size,
      ends.provided);
}

void print_method(const MethodBudget& method) {
  say("\nmethod {}\n  {:24}{:>14}{:>14}\n", printable(method.name), "bytes of", "64-bit", "32-bit");
  print_allocators(method);
  for (const MethodBudget::Planned& planned : method.planned) {
    say("  planned memory {}{}: {}, used up to {}\n", planned.id, region_of(planned.id), planned.size,
        planned.used);
  }
  print_ends(method.inputs.count == 1 ? "input" : "inputs", method.inputs);
  print_ends(method.outputs.count == 1 ? "output" : "outputs", method.outputs);
  for (std::size_t i = 0; i < method.delegates.size(); ++i) {
    const MethodBudget::Delegate& delegate = method.delegates[i];
    std::string streams;
    if (const auto& parts = delegate.ethos_u) {
      const auto shown = [](std::optional<std::uint64_t> size) {
        return size ? std::to_string(*size) : "not in the program";
      };
      streams = text(": commands {}, weights {}, scratch {}", shown(parts->commands), shown(parts->weights),
                     shown(parts->scratch));
    }
    say("  delegate {} to {}, {} bytes of data{}\n", i, printable(delegate.backend), delegate.size, streams);
  }
}

}  // namespace

std::string budget_to_c(const MemoryBudget& budget) {
  std::string out = "// Memory that ExecuTorch's runtime asks for, in bytes.\n";
  for (const std::string& sentence : unsaid(budget)) out += text("// {}.\n", sentence);
  const auto add = [&](std::string_view name, std::uint64_t size) {
    out += text("#define {} {}\n", name, size);
  };
  const auto add_pools = [&](const PoolSizes& pools) {
    add("ET_METHOD_ALLOCATOR_SIZE", pools.method_allocator);
    add("ET_TEMP_ALLOCATOR_SIZE", pools.temp_allocator);
  };
  out += "#include <stdint.h>\n\n#if UINTPTR_MAX > 0xffffffff\n";
  add_pools(budget.pools_64());
  out += "#else\n";
  add_pools(budget.pools_32());
  out += "#endif\n";
  const std::vector<std::uint64_t> planned = budget.planned();
  add("ET_PLANNED_MEMORY_COUNT", planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    add(text("ET_PLANNED_MEMORY_{}_SIZE", i + 1), planned[i]);
  }
  add("ET_FILE_SIZE", budget.file_size);
  add("ET_FILE_ALIGNMENT", budget.file_alignment);
  return out;
}

void print_budget(const std::string& file, const MemoryBudget& budget) {
  say("{}: {} bytes, at a multiple of {} where it is read whole; flatbuffer {}, constants {}\n", file,
      budget.file_size, budget.file_alignment, budget.flatbuffer_size, budget.constants_size);
  for (const MethodBudget& method : budget.methods) print_method(method);
  if (!budget.cases.empty()) say("\n");
  for (const CaseBudget& cases : budget.cases) {
    say("test suite of {}: inputs of up to {} bytes, expected outputs of up to {} bytes\n",
        printable(cases.method), cases.inputs, cases.expected_outputs);
  }
  const auto sentences = unsaid(budget);
  if (!sentences.empty()) say("\nnot in these figures\n");
  for (const std::string& sentence : sentences) say("  {}\n", sentence);
}

}  // namespace etstream
