// SPDX-License-Identifier: BSD-3-Clause
//
// JsonTape: a JSON document in memory, as compact as its text or more so: a small integer takes one byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/json_stream.h"

namespace etstream {

/// The keys that are expected, each of which is stored once.
using JsonKeys = std::unordered_map<std::string, std::uint32_t>;

/// A value, or a key and its value, is known by its place on the tape. Const use from several threads is
/// safe.
class JsonTape {
 public:
  using Place = std::uint64_t;
  static constexpr Place kRoot = 0;

  using Kind = JsonEvent::Kind;
  /// Its string lives as long as the tape.
  struct Value : JsonEvent {
    Place first = 0;  // of an object or array: where its content begins
    Place end = 0;    // of the value
  };
  struct Key {
    std::optional<std::uint32_t> number;  // none for one that was not expected
    std::string_view name;
    Place value = 0;
  };

  JsonTape(JsonTape&&) = default;
  JsonTape& operator=(JsonTape&&) = default;

  /// `keys` are numbered from 1 on. Errors: those of parse_json.
  [[nodiscard]] static Result<JsonTape> parse(const ByteSource& json, JsonKeys keys, int deepest);

  [[nodiscard]] Value at(Place place) const;
  /// At `place` in an object, before its end.
  [[nodiscard]] Key key_at(Place place) const;
  /// `error`, which is about the value or key at `place`: "FILE: line N: MESSAGE". Reads the text again, for
  /// the line.
  [[nodiscard]] Error at_line(Place place, const Error& error) const;
  /// The same with the path that leads there: "FILE: line N: PATH: MESSAGE".
  [[nodiscard]] Error error_at(Place place, ErrorCode code, std::string_view message) const;

 private:
  friend class JsonTapeWriter;

  JsonTape(ByteSource json, JsonKeys keys, int deepest);
  std::uint64_t number_at(Place& place) const;
  /// How to reach a place: "execution_plan[0].values".
  std::string path_to(Place place) const;

  ByteSource json_;
  int deepest_;
  JsonKeys keys_;
  std::vector<std::string_view> names_;  // of keys_, by number
  std::vector<std::uint8_t> bytes_;
};

}  // namespace etstream
