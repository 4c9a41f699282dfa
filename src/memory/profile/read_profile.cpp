// SPDX-License-Identifier: BSD-3-Clause
#include <string_view>

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

}  // namespace etstream
