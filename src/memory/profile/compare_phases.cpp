// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "etstream/profile.h"

namespace etstream {
namespace {

/// Phases that are deeper, which a file may tell of, are taken for phases at this depth.
constexpr std::size_t kDeepest = 256;

/// A phase, and those in it.
struct Node {
  const PhaseProfile* phase = nullptr;  // null for the command, and for no phase
  std::vector<Node> inner;
};

/// Puts phases into those around them: a phase is in the last one of its process that is one less deep.
Node tree_of(const Profile& profile) {
  std::vector<std::vector<std::size_t>> inner(profile.phases.size() + 1);  // the last: of the command
  std::map<std::int32_t, std::vector<std::size_t>> around;                 // of each process, by depth
  for (std::size_t i = 0; i < profile.phases.size(); ++i) {
    std::vector<std::size_t>& stack = around[profile.phases[i].process];
    stack.resize(std::min({std::size_t{profile.phases[i].depth}, stack.size(), kDeepest}));
    inner[stack.empty() ? profile.phases.size() : stack.back()].push_back(i);
    stack.push_back(i);
  }
  // Phases in a phase come behind it.
  std::vector<Node> nodes(inner.size());
  for (std::size_t i = profile.phases.size(); i-- > 0;) {
    nodes[i].phase = &profile.phases[i];
    for (const std::size_t each : inner[i]) nodes[i].inner.push_back(std::move(nodes[each]));
  }
  for (const std::size_t each : inner.back()) nodes.back().inner.push_back(std::move(nodes[each]));
  return std::move(nodes.back());
}

void compare(const Node& before, const Node& after, std::uint32_t depth, std::vector<ComparedPhase>& out) {
  static const Node kNone;
  const auto add = [&](const Node& a, const Node& b) {
    out.push_back({(b.phase != nullptr ? b : a).phase->name, depth, a.phase, b.phase});
    compare(a, b, depth + 1, out);
  };
  std::map<std::string_view, std::deque<std::size_t>> places;  // in `before`, by name, of those not compared
  for (std::size_t i = 0; i < before.inner.size(); ++i) places[before.inner[i].phase->name].push_back(i);
  std::vector<const Node*> matches;  // in `before`, of each of `after`; null if there is none
  std::vector<bool> is_matched(before.inner.size());
  for (const Node& each : after.inner) {
    std::deque<std::size_t>& alike = places[each.phase->name];
    matches.push_back(alike.empty() ? nullptr : &before.inner[alike.front()]);
    if (alike.empty()) continue;
    is_matched[alike.front()] = true;
    alike.pop_front();
  }
  // One that only `before` has comes in front of what followed it there.
  std::size_t next = 0;
  const auto add_up_to = [&](const Node* end) {
    for (; next < before.inner.size() && &before.inner[next] != end; ++next) {
      if (!is_matched[next]) add(before.inner[next], kNone);
    }
  };
  for (std::size_t i = 0; i < after.inner.size(); ++i) {
    const bool is_ahead =
        matches[i] != nullptr && std::cmp_greater_equal(matches[i] - before.inner.data(), next);
    if (is_ahead) add_up_to(matches[i]);
    add(matches[i] != nullptr ? *matches[i] : kNone, after.inner[i]);
  }
  add_up_to(nullptr);
}

}  // namespace

std::vector<ComparedPhase> compare_phases(const Profile& before, const Profile& after) {
  std::vector<ComparedPhase> out;
  compare(tree_of(before), tree_of(after), 0, out);
  return out;
}

}  // namespace etstream
