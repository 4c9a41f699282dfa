// SPDX-License-Identifier: BSD-3-Clause
#include "files/diff_delegates.h"

#include <algorithm>

#include "formats/pte/program_model.h"

namespace etstream {
namespace {

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

}  // namespace

Result<DelegateComparison::Side> DelegateComparison::read_side(const ProgramFile& program) {
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

Result<DelegateComparison> DelegateComparison::open(const ProgramFile& a, const ProgramFile& b) {
  DelegateComparison out;
  ETSTREAM_ASSIGN(out.a_, read_side(a));
  ETSTREAM_ASSIGN(out.b_, read_side(b));
  return out;
}

const DelegateUses* DelegateComparison::uses_of(const Side& side, const GraphDelegate& delegate) {
  const auto found = side.uses.find({delegate.in_segment, delegate.index});
  return found == side.uses.end() || found->second.uses.empty() ? nullptr : &found->second;
}

Result<void> DelegateComparison::compare(DiffList& list, const std::vector<GraphDelegate>& a,
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

Result<void> DelegateComparison::compare_uses(DiffList list, const DelegateUses& a, const DelegateUses& b) {
  ETSTREAM_TRY(list.compare_bytes("data without keys", "", a.without_keys, b.without_keys));
  list.compare("number of constants", std::to_string(a.uses.size()), std::to_string(b.uses.size()));
  for (std::size_t i = 0; i < std::min(a.uses.size(), b.uses.size()); ++i) {
    ETSTREAM_TRY(compare_use(list, i, a.uses[i], b.uses[i]));
  }
  return {};
}

Result<void> DelegateComparison::compare_use(DiffList& list, std::size_t number, const NamedDataUse& a,
                                             const NamedDataUse& b) {
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

}  // namespace etstream
