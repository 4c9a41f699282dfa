// SPDX-License-Identifier: BSD-3-Clause
#include "files/diff_list.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "formats/pte/backends/backend_payload.h"
#include "formats/pte/program_model.h"
#include "formats/pte/rewrite/program_plan.h"

namespace etstream {
namespace {

/// Named data by its key. If a key comes twice, its first data counts.
using NamedPieces = std::map<std::string, ByteSource>;

/// Describes a use of named data: "constant 2, filter of XNNFullyConnected 0, 'layers.0.weight'"
std::string subject_of(std::size_t number, const NamedDataUse& use, const KeyNames& names) {
  std::string out = text("constant {}", number);
  if (!use.use.empty()) out += text(", {}", use.use);
  const auto name = names.find(use.key);
  if (name != names.end()) out += text(", {}", quote(name->second));
  return out;
}

NamedPiece piece_of(const NamedDataUse& use, const ByteSource& data) {
  std::string what;
  if (use.is_of_nibbles) {
    what = "elements of 4 bits";
  } else if (use.layout) {
    what = describe(*use.layout);
  }
  return {.name = "",
          .what = what,
          .data = data,
          .key = quote(use.key),
          .layout = use.layout,
          .is_of_nibbles = use.is_of_nibbles};
}

/// Compares the delegates of two programs, and the named data that they ask for, by its use. A key that is a
/// hash of its data can't tell what became of a weight.
class DelegateComparison {
 public:
  /// Reads what the delegates of both programs ask for. Errors: those of read_named_data_uses().
  static Result<DelegateComparison> open(const ProgramFile& a, const ProgramFile& b) {
    DelegateComparison out;
    ETSTREAM_ASSIGN(out.a_, read_side(a));
    ETSTREAM_ASSIGN(out.b_, read_side(b));
    return out;
  }

  /// Compares the delegates of a method that is in both: their data without keys, and the data that they ask
  /// for, one after another.
  Result<void> compare(DiffList& list, const std::vector<GraphDelegate>& a,
                       const std::vector<GraphDelegate>& b) {
    const auto told = [](const std::vector<GraphDelegate>& delegates, std::size_t i) {
      return i < delegates.size() ? printable(delegates[i].backend) : "";
    };
    const auto place = [](const GraphDelegate& delegate) {
      return delegate.in_segment ? "in a segment" : "in the flatbuffer";
    };
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string subject = text("delegate {}", i);
      const std::string backend = told(a, i);
      list.compare(subject, backend, told(b, i));
      if (i >= a.size() || i >= b.size()) continue;
      list.compare_layout(subject, place(a[i]), place(b[i]));
      const std::string named = text("{} ({})", subject, backend);
      const DelegateUses* const one = uses_of(a_, a[i]);
      const DelegateUses* const other = uses_of(b_, b[i]);
      if (one && other && a[i].backend == b[i].backend) {
        ETSTREAM_TRY(compare_uses(list.within(named), *one, *other));
      } else {
        ETSTREAM_TRY(list.compare_bytes(named, "", a[i].data, b[i].data));
      }
    }
    return {};
  }

  [[nodiscard]] const NamedPieces& named_a() const noexcept { return a_.named; }
  [[nodiscard]] const NamedPieces& named_b() const noexcept { return b_.named; }
  /// Returns the keys of the named data that was compared.
  [[nodiscard]] const std::set<std::string>& compared_a() const noexcept { return a_.compared; }
  [[nodiscard]] const std::set<std::string>& compared_b() const noexcept { return b_.compared; }

 private:
  struct Side {
    std::map<std::pair<bool, std::uint32_t>, DelegateUses> uses;  // by the place of the delegate's data
    NamedPieces named;
    std::set<std::string> compared;
  };

  static Result<Side> read_side(const ProgramFile& program) {
    Side out;
    ETSTREAM_ASSIGN(auto delegates, read_named_data_uses(program));
    for (DelegateUses& delegate : delegates) {
      const std::pair place(delegate.in_segment, delegate.index);
      out.uses.emplace(place, std::move(delegate));
    }
    ETSTREAM_ASSIGN(auto named, pte::read_named_data(program.model()));
    for (pte::NamedPayload& each : named) out.named.try_emplace(std::move(each.key), std::move(each.data));
    return out;
  }

  /// Returns null if the delegate's data asks for nothing.
  static const DelegateUses* uses_of(const Side& side, const GraphDelegate& delegate) {
    const auto found = side.uses.find({delegate.in_segment, delegate.index});
    return found == side.uses.end() || found->second.uses.empty() ? nullptr : &found->second;
  }

  Result<void> compare_uses(DiffList list, const DelegateUses& a, const DelegateUses& b) {
    ETSTREAM_TRY(list.compare_bytes("data without keys", "", a.without_keys, b.without_keys));
    list.compare("number of constants", std::to_string(a.uses.size()), std::to_string(b.uses.size()));
    for (std::size_t i = 0; i < std::min(a.uses.size(), b.uses.size()); ++i) {
      ETSTREAM_TRY(compare_use(list, i, a.uses[i], b.uses[i]));
    }
    return {};
  }

  Result<void> compare_use(DiffList& list, std::size_t number, const NamedDataUse& a, const NamedDataUse& b) {
    a_.compared.insert(a.key);
    b_.compared.insert(b.key);
    if (!told_.emplace(a.key, b.key).second) return {};
    const KeyNames& names = list.names_a().contains(a.key) ? list.names_a() : list.names_b();
    const std::string subject = subject_of(number, list.names_a().contains(a.key) ? a : b, names);
    const auto one = a_.named.find(a.key);
    const auto other = b_.named.find(b.key);
    if (one == a_.named.end() || other == b_.named.end()) {
      const auto told = [](const NamedDataUse& use, bool is_there) {
        return text("key {}{}", quote(use.key), is_there ? "" : ", which is not in the program");
      };
      list.compare(subject, told(a, one != a_.named.end()), told(b, other != b_.named.end()));
      return {};
    }
    ETSTREAM_ASSIGN(const bool same,
                    list.compare_data(subject, piece_of(a, one->second), piece_of(b, other->second)));
    if (same) list.compare(subject, text("key {}", quote(a.key)), text("key {}", quote(b.key)));
    return {};
  }

  Side a_;
  Side b_;
  std::set<std::pair<std::string, std::string>> told_;  // pairs of keys
};

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
