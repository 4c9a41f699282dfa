// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/duplicates.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/try.h"
#include "etstream/program_graph.h"
#include "io/file_budget.h"
#include "io/hash_source.h"
#include "report/inspection.h"

namespace etstream {
namespace {

/// The name of each payload by its size and its place in the file, so that a shared one is there once.
using Payloads = std::map<std::pair<std::uint64_t, std::uint64_t>, std::string>;

void add_payload(Payloads& payloads, const std::string& name, std::uint64_t offset, std::uint64_t size) {
  if (size > 0) payloads.try_emplace({size, offset}, name);
}

/// Those of a method that are no whole segments. `file` is what offsets count from.
void add_graph(const ProgramGraph& graph, const ByteSource& file, Payloads& payloads) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    const auto offset = value.data.offset_in(file);
    if (!offset || value.data.size() == 0) continue;
    const std::string which = value.name.empty() ? text("value {}", i) : quote(value.name);
    add_payload(payloads, text("{} {} {}", quote(graph.method), name_of(value.storage), which), *offset,
                value.data.size());
  }
  for (std::size_t i = 0; i < graph.delegates.size(); ++i) {
    const GraphDelegate& delegate = graph.delegates[i];
    const auto offset = delegate.data.offset_in(file);
    if (!offset) continue;
    add_payload(payloads, text("{} delegate {} ({})", quote(graph.method), i, printable(delegate.backend)),
                *offset, delegate.data.size());
  }
}

Result<void> add_graphs(const ProgramFile& program, const ByteSource& file, Payloads& payloads) {
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, i));
    add_graph(graph, file, payloads);
  }
  return {};
}

/// Adds what is in the file's program, if it has one.
Result<void> add_programs(const AnyFile& file, Payloads& payloads) {
  return match(
      file, [&](const ProgramFile& program) { return add_graphs(program, program.file(), payloads); },
      [&](const BundledProgramFile& bundle) {
        const auto program = bundle.open_program();
        return program ? add_graphs(*program, bundle.file(), payloads) : Result<void>();
      },
      [](const TensorDataFile&) { return Result<void>(); },
      [](const CheckpointFile&) { return Result<void>(); },
      [](const FatContainerFile&) { return Result<void>(); },
      [](const NativePackageFile&) { return Result<void>(); });
}

/// Adds the groups of equal bytes among payloads of one size.
Result<void> add_duplicates(const ByteSource& file, Payloads::const_iterator begin,
                            Payloads::const_iterator end, FileBudget& budget, std::vector<Duplicates>& out) {
  std::map<ContentHash, Duplicates> groups;
  for (; begin != end; ++begin) {
    const auto& [size, offset] = begin->first;
    ETSTREAM_TRY(budget.spend(size));
    ETSTREAM_ASSIGN(const ByteSource payload, file.slice(offset, size));
    ETSTREAM_ASSIGN(const ContentHash hash, hash_of(payload));
    Duplicates& group = groups[hash];
    group.size = size;
    group.names.push_back(begin->second);
  }
  for (auto& [hash, group] : groups) {
    if (group.names.size() > 1) out.push_back(std::move(group));
  }
  return {};
}

}  // namespace

Result<std::vector<Duplicates>> find_duplicates(const AnyFile& file, const FileInspection& inspection) {
  Payloads payloads;
  for (const FilePart& part : inspection.parts) add_payload(payloads, part.name, part.offset, part.size);
  ETSTREAM_TRY(add_programs(file, payloads));
  std::vector<Duplicates> out;
  FileBudget budget(source_of(file));
  for (auto begin = payloads.begin(); begin != payloads.end();) {
    const auto end = payloads.lower_bound({begin->first.first + 1, 0});
    if (std::next(begin) != end) ETSTREAM_TRY(add_duplicates(source_of(file), begin, end, budget, out));
    begin = end;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Duplicates& a, const Duplicates& b) { return a.wasted() > b.wasted(); });
  return out;
}

Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file) {
  ETSTREAM_ASSIGN(FileInspection inspection, inspect(file, {.duplicates = true}));
  return std::move(inspection.duplicates);
}

}  // namespace etstream
