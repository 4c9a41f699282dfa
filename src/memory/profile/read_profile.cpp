// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/profile.h"
#include "flatbuffer/json/json_reader.h"

namespace etstream {
namespace {

/// Reads objects into structs by their members' names. Skips other members.
class ProfileReader {
 public:
  explicit ProfileReader(JsonReader& json) : json_(json) {}

  Result<void> read(Profile& out) {
    bool is_profile = false;
    ETSTREAM_TRY(json_.members([&](std::string_view key) -> Result<void> {
      if (key == "seconds") return number(out.seconds);
      if (key == "cpu_seconds") return number(out.cpu_seconds);
      if (key == "spilled") return size(out.spilled);
      if (key == "cgroup_limit") return size(out.cgroup_limit);
      if (key == "exit_code") return small(out.end.exit_code);
      if (key == "signal") return small(out.end.signal);
      if (key == "cgroup_kills") return size(out.cgroup_kills);
      if (key == "peak") {
        is_profile = true;
        return peak(out.peak);
      }
      if (key == "samples") return samples(out.samples);
      if (key == "phases") {
        return json_.elements([&] { return phase(out.phases.emplace_back()); });
      }
      json_.take();
      return {};
    }));
    return is_profile ? Result<void>() : Result<void>(json_.error("expected a profile, with its peak"));
  }

 private:
  Result<void> number(double& out) {
    const JsonTape::Value value = json_.take();
    if (value.kind == JsonReader::Kind::kInteger) {
      out = static_cast<double>(value.integer);
    } else if (value.kind == JsonReader::Kind::kDouble) {
      out = value.number;
    } else {
      return json_.error(text("expected a number, found {}", name_of(value.kind)));
    }
    return {};
  }
  Result<void> size(std::uint64_t& out) {
    double value = 0;
    ETSTREAM_TRY(number(value));
    if (!(value >= 0 && value < 9e18)) return json_.error("expected a number of bytes");
    out = static_cast<std::uint64_t>(value);
    return {};
  }
  Result<void> small(std::int32_t& out) {
    ETSTREAM_ASSIGN(const JsonTape::Value value, json_.take(JsonReader::Kind::kInteger));
    out = static_cast<std::int32_t>(value.integer);
    return {};
  }
  Result<void> peak(PeakMemory& out) {
    return json_.members([&](std::string_view key) -> Result<void> {
      if (key == "resident") return size(out.resident);
      if (key == "anonymous") return size(out.anonymous);
      if (key == "file") return size(out.file);
      json_.take();
      return {};
    });
  }
  Result<void> samples(std::vector<ProfileSample>& out) {
    return json_.members([&](std::string_view key) -> Result<void> {
      if (key != "time" && key != "anonymous") {
        json_.take();
        return {};
      }
      std::size_t next = 0;
      return json_.elements([&]() -> Result<void> {
        if (next == out.size()) out.emplace_back();
        ProfileSample& sample = out[next++];
        return key == "time" ? number(sample.time) : size(sample.anonymous);
      });
    });
  }
  Result<void> phase(PhaseProfile& out) {
    return json_.members([&](std::string_view key) -> Result<void> {
      if (key == "name") {
        ETSTREAM_ASSIGN(const JsonTape::Value value, json_.take(JsonReader::Kind::kString));
        out.name = std::string(value.string);
        return {};
      }
      if (key == "start") return number(out.start);
      if (key == "seconds") return number(out.seconds);
      if (key == "process") return small(out.process);
      if (key == "depth") {
        double depth = 0;
        ETSTREAM_TRY(number(depth));
        out.depth = depth >= 0 && depth < 1e6 ? static_cast<std::uint32_t>(depth) : 0;
        return {};
      }
      if (key == "peak") return peak(out.peak);
      if (key == "with_descendants") return peak(out.with_descendants);
      json_.take();
      return {};
    });
  }

  JsonReader& json_;
};

}  // namespace

Result<Profile> read_profile(const ByteSource& json) {
  Profile out;
  ETSTREAM_TRY(read_json(json, ErrorCode::kInvalidArgument,
                         [&](JsonReader& reader) { return ProfileReader(reader).read(out); }));
  return out;
}

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
