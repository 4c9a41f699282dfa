// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <set>

#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "etstream/inspect.h"
#include "etstream/program_graph.h"
#include "files/diff_delegates.h"
#include "files/diff_list.h"
#include "formats/pte/rewrite/program_plan.h"

namespace etstream {
namespace {

using Graphs = std::vector<ProgramGraph>;

/// Data of a program. Its name is "constant 'linear.weight'", or "constant 3" if the program has no name for
/// it.
using Payloads = std::vector<NamedPiece>;

Result<Graphs> read_graphs(const ProgramFile& program) {
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  Graphs graphs;
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(graphs.emplace_back(), ProgramGraph::read(program, i));
  }
  return graphs;
}

std::string values_text(const ProgramGraph& graph, const std::vector<std::uint32_t>& values) {
  std::string out;
  for (const std::uint32_t value : values) {
    out += text("{}{}", out.empty() ? "" : ", ", describe(graph.values[value].info));
  }
  return out;
}

/// Describes a value, without its place in planned memory and its data.
std::string value_text(const GraphValue& value) {
  std::string doubles;
  for (const double number : value.doubles) doubles += text(" {}", exact_text(number));
  return text("{} {} {}{}{}{}{}", describe(value.info), name_of(value.storage), printable(value.name),
              printable(value.string), list_text(value.items), doubles, list_text(value.bools));
}

std::string place_text(const GraphValue& value) {
  return value.memory_id == 0 ? "not planned" : text("memory {} at {}", value.memory_id, value.memory_offset);
}

std::string call_text(const ProgramGraph& graph, const GraphCall& call) {
  const bool is_jump = call.kind == CallKind::kJumpIfFalse;
  return text("{} {}{}", printable(graph.name_of(call)), list_text(call.args),
              is_jump ? text(" to {}", call.destination) : "");
}

/// Compares two lists place by place. Tells how many entries differ and which is the first.
template <class T, class Text>
void compare_entries(DiffList& list, std::string_view noun, const std::vector<T>& a, const std::vector<T>& b,
                     Text text_of) {
  list.compare(text("number of {}s", noun), std::to_string(a.size()), std::to_string(b.size()));
  std::optional<std::size_t> first;
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (text_of(0, a[i]) == text_of(1, b[i])) continue;
    if (!first) first = i;
    ++count;
  }
  if (!first) return;
  const std::string subject = count == 1 ? text("{} {}", noun, *first)
                                         : text("{}, the first of them {}", counted(count, noun), *first);
  list.compare(subject, text_of(0, a[*first]), text_of(1, b[*first]));
}

void compare_operators(DiffList& list, const ProgramGraph& a, const ProgramGraph& b) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> calls;
  const auto count = [&](const ProgramGraph& graph, auto member) {
    for (const GraphCall& call : graph.calls) {
      if (call.kind == CallKind::kKernel) ++(calls[printable(graph.name_of(call))].*member);
    }
  };
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  count(a, &Counts::first);
  count(b, &Counts::second);
  const auto told = [](std::uint64_t n) { return n == 0 ? "" : counted(n, "call"); };
  for (const auto& [name, both] : calls) {
    list.compare(text("operator {}", name), told(both.first), told(both.second));
  }
}

Result<void> compare_methods(DiffList list, const ProgramGraph& a, const ProgramGraph& b,
                             DelegateComparison& delegates) {
  list.compare("inputs", values_text(a, a.inputs), values_text(b, b.inputs));
  list.compare("outputs", values_text(a, a.outputs), values_text(b, b.outputs));
  compare_operators(list, a, b);
  ETSTREAM_TRY(delegates.compare(list, a.delegates, b.delegates));
  compare_entries(list, "call", a.calls, b.calls,
                  [&](int which, const GraphCall& call) { return call_text(which == 0 ? a : b, call); });
  compare_entries(list, "value", a.values, b.values,
                  [](int, const GraphValue& value) { return value_text(value); });
  compare_entries(list, "planned memory", a.memory_sizes, b.memory_sizes,
                  [](int, std::uint64_t size) { return counted(size, "byte"); });
  if (a.values.size() == b.values.size()) {
    DiffList plan = list.within("memory plan");
    compare_entries(plan, "value", a.values, b.values,
                    [](int, const GraphValue& value) { return place_text(value); });
  }
  return {};
}

/// Returns the constants of all methods and the initial data of mutable memory, each once.
Payloads payloads_of(const Graphs& graphs) {
  std::set<std::pair<TensorStorage, std::uint32_t>> seen;
  Payloads out;
  for (const ProgramGraph& graph : graphs) {
    for (const GraphValue& value : graph.values) {
      const bool has_data =
          value.storage == TensorStorage::kConstant || value.storage == TensorStorage::kMutable;
      if (!has_data || !seen.emplace(value.storage, value.data_index).second) continue;
      const std::string key = value.name.empty() ? text("{} {}", name_of(value.storage), value.data_index)
                                                 : text("{} {}", name_of(value.storage), quote(value.name));
      const auto* tensor = std::get_if<TensorInfo>(&value.info);
      out.push_back({.name = key,
                     .what = describe(value.info),
                     .data = value.data,
                     .layout = tensor ? std::optional(TensorLayout{tensor->scalar_type, tensor->sizes,
                                                                   tensor->dim_order})
                                      : std::nullopt});
    }
  }
  return out;
}

/// Returns the named data that no delegate asks for at the same place in both programs.
Payloads other_named_data(const NamedPieces& all, const std::set<std::string>& compared,
                          const KeyNames& names) {
  Payloads out;
  for (const auto& [key, data] : all) {
    if (compared.contains(key)) continue;
    out.push_back({.name = text("named data {}", shown_name(names, key)),
                   .what = "",
                   .data = data,
                   .key = names.contains(key) ? quote(key) : ""});
  }
  return out;
}

using PayloadPairs = std::map<std::string, std::pair<const NamedPiece*, const NamedPiece*>>;

/// Compares the bytes of payloads, which may be shared and lie in each other, in time that grows with the
/// sizes of both files.
class PayloadComparison {
 public:
  PayloadComparison(const ByteSource& a, const ByteSource& b)
      : budget_(text("{} and {}", a.name(), b.name()), a.size() + b.size()) {}

  /// Returns the payloads that differ. Leaves out payloads with equal bytes under one key, and pairs of equal
  /// shape and bytes under two keys, as constants without names get new numbers when one is added. Error:
  /// kTooLarge for files whose payloads share their bytes often, and in one file in other ways than in the
  /// other.
  Result<PayloadPairs> changed(const PayloadPairs& all) {
    PayloadPairs changed;
    std::set<std::string_view> in_a;
    std::set<std::string_view> in_b;
    for (const auto& [key, both] : all) {
      if (both.first && both.second && both.first->what == both.second->what) {
        ETSTREAM_ASSIGN(const bool same, are_same(both.first->data, both.second->data));
        if (same) continue;
      }
      changed[key] = both;
      if (both.first) in_a.insert(both.first->what);
      if (both.second) in_b.insert(both.second->what);
    }
    std::multimap<std::pair<std::string, ContentHash>, std::string> hashes_of_b;
    for (const auto& [key, both] : changed) {
      if (!both.second || !in_a.contains(both.second->what)) continue;
      ETSTREAM_ASSIGN(const auto hash, affordable_hash(both.second->data));
      if (hash) hashes_of_b.emplace(std::pair(both.second->what, *hash), key);
    }
    for (auto& [key, both] : changed) {
      if (!both.first || !in_b.contains(both.first->what)) continue;
      ETSTREAM_ASSIGN(const auto hash, affordable_hash(both.first->data));
      if (!hash) continue;
      const auto same = hashes_of_b.find({both.first->what, *hash});
      if (same == hashes_of_b.end()) continue;
      both.first = nullptr;
      changed[same->second].second = nullptr;
      hashes_of_b.erase(same);
    }
    return changed;
  }

  /// Adds the difference of two payloads. Leaves out that of their elements once the budget is spent, unless
  /// it decides whether they are the same: then it is an error.
  Result<void> compare(DiffList& list, const std::string& name, NamedPiece a, NamedPiece b) {
    const std::pair places(a.data.place(), b.data.place());
    const auto [afforded, is_new] = afforded_.try_emplace(places, false);
    if (is_new) {
      auto spent = budget_.spend(a.data.size());
      if (!spent && list.has_tolerance()) return spent;
      afforded->second = spent.has_value();
    }
    if (!afforded->second) a.layout = b.layout = std::nullopt;
    ETSTREAM_TRY(list.compare_data(name, a, b));
    return {};
  }

 private:
  Result<bool> are_same(const ByteSource& a, const ByteSource& b) {
    if (a.size() != b.size()) return false;
    const std::uint64_t before = comparisons_.compared();
    ETSTREAM_ASSIGN(const auto difference, comparisons_.first_difference(a, b));
    ETSTREAM_TRY(budget_.spend(comparisons_.compared() - before));
    return !difference;
  }

  /// Returns the hash of a payload, and nothing once the budget is spent: then two keys of one content are
  /// told as two payloads.
  Result<std::optional<ContentHash>> affordable_hash(const ByteSource& data) {
    const auto [known, is_new] = hashes_.try_emplace(data.place());
    if (is_new && budget_.spend(data.size()).has_value()) {
      ETSTREAM_ASSIGN(known->second, hash_of(data));
    }
    return known->second;
  }

  FileBudget budget_;
  Comparisons comparisons_;
  std::map<std::pair<SourcePlace, SourcePlace>, bool> afforded_;  // pairs whose elements may be compared
  std::map<SourcePlace, std::optional<ContentHash>> hashes_;
};

Result<void> compare_payloads(DiffList& list, PayloadComparison& comparison, const Payloads& a,
                              const Payloads& b) {
  ETSTREAM_ASSIGN(const PayloadPairs changed,
                  comparison.changed(by_key<NamedPiece>(a, b, &NamedPiece::name)));
  for (const auto& [name, both] : changed) {
    if (both.first && both.second && both.first->what == both.second->what) {
      ETSTREAM_TRY(comparison.compare(list, name, *both.first, *both.second));
    } else {
      list.compare(name, piece_text(both.first), piece_text(both.second));
    }
  }
  return {};
}

/// Returns the program in one fixed layout, whatever layout it has.
Result<ByteSource> laid_out(const ProgramFile& program, ComparedParts parts) {
  ETSTREAM_ASSIGN(const FilePlan plan, plan_comparable(program, parts));
  std::vector<ByteSource> pieces;
  for (const Extent& extent : plan.extents) pieces.push_back(extent.source);
  ETSTREAM_ASSIGN(ByteSource whole, ByteSource::concatenation(std::move(pieces)));
  if (parts == ComparedParts::kAll) return whole;
  ETSTREAM_ASSIGN(const ProgramFile opened, ProgramFile::open(whole));
  return whole.slice(0, opened.flatbuffer_size());
}

/// Returns whether both programs are the same, or all of them except what lies in segments. A program with
/// fields that the schema lacks can't be laid out again, and counts as different.
Result<bool> same_content(const ProgramFile& a, const ProgramFile& b, ComparedParts parts) {
  std::vector<ByteSource> both;
  for (const ProgramFile* const program : {&a, &b}) {
    auto again = laid_out(*program, parts);
    if (!again && again.error().code == ErrorCode::kUnsupported) return false;
    if (!again) return std::move(again).error();
    both.push_back(std::move(again).value());
  }
  return same_bytes(both[0], both[1]);
}

Result<void> compare_content(const ProgramFile& a, const ProgramFile& b, DiffList& list) {
  ETSTREAM_ASSIGN(const auto version_a, a.version());
  ETSTREAM_ASSIGN(const auto version_b, b.version());
  list.compare("version", std::to_string(version_a), std::to_string(version_b));
  ETSTREAM_ASSIGN(const Graphs graphs_a, read_graphs(a));
  ETSTREAM_ASSIGN(const Graphs graphs_b, read_graphs(b));
  ETSTREAM_ASSIGN(DelegateComparison delegates, DelegateComparison::open(a, b));
  const auto name = [](const ProgramGraph& graph) { return text("method {}", quote(graph.method)); };
  for (const auto& [method, both] : by_key<ProgramGraph>(graphs_a, graphs_b, name)) {
    list.compare(method, both.first ? "there" : "", both.second ? "there" : "");
    if (both.first && both.second)
      ETSTREAM_TRY(compare_methods(list.within(method), *both.first, *both.second, delegates));
  }
  PayloadComparison comparison(a.file(), b.file());
  ETSTREAM_TRY(compare_payloads(list, comparison, payloads_of(graphs_a), payloads_of(graphs_b)));
  const Payloads named_a = other_named_data(delegates.named_a(), delegates.compared_a(), list.names_a());
  const Payloads named_b = other_named_data(delegates.named_b(), delegates.compared_b(), list.names_b());
  return compare_payloads(list, comparison, named_a, named_b);
}

}  // namespace

Result<bool> diff_files(const ProgramFile& a, const ProgramFile& b, DiffList list) {
  ETSTREAM_ASSIGN(const bool same, same_content(a, b, ComparedParts::kAll));
  if (!same) {
    ETSTREAM_TRY(compare_content(a, b, list));
    bool is_told = list.has_content();
    if (!is_told && list.has_tolerated()) {
      ETSTREAM_ASSIGN(is_told, same_content(a, b, ComparedParts::kTables));
    }
    if (!is_told) {
      list.compare("what is not shown here", "compile specs, stack traces, container types, unused data...",
                   "others");
    }
  }
  ETSTREAM_TRY(diff_places(a, b, same, list));
  return same;
}

}  // namespace etstream
