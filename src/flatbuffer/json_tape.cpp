// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json_tape.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/text.h"
#include "base/try.h"

namespace etstream {
namespace {

// What a value begins with. What is below is the value itself, an integer.
constexpr std::uint8_t kNullTag = 0xf0;
constexpr std::uint8_t kFalseTag = 0xf1;
constexpr std::uint8_t kTrueTag = 0xf2;
constexpr std::uint8_t kPositiveTag = 0xf3;  // a number follows
constexpr std::uint8_t kNegativeTag = 0xf4;  // -1 - a number, which follows
constexpr std::uint8_t kDoubleTag = 0xf5;    // 8 bytes follow
constexpr std::uint8_t kStringTag = 0xf6;    // its length as a number, and it, follow
constexpr std::uint8_t kObjectTag = 0xf7;    // its end, in 8 bytes, and its keys and values, follow
constexpr std::uint8_t kArrayTag = 0xf8;     // its end, in 8 bytes, and its values, follow

constexpr std::uint32_t kUnexpectedKey = 0;  // its length and it follow

}  // namespace

/// Puts events on a tape.
class JsonTapeWriter final : public JsonHandler {
 public:
  struct Stop {
    JsonTape::Place place;
    const Error& error;
  };

  /// With `stop`, its error is given at its place.
  explicit JsonTapeWriter(JsonTape& tape, std::optional<Stop> stop = {}) : tape_(tape), stop_(stop) {}

  Result<void> on(const JsonEvent& event) override {
    using EventKind = JsonEvent::Kind;
    if (stop_ && bytes().size() == stop_->place && event.kind != EventKind::kEndObject &&
        event.kind != EventKind::kEndArray) {
      return stop_->error;
    }
    switch (event.kind) {
      case EventKind::kNull:
        bytes().push_back(kNullTag);
        break;
      case EventKind::kBool:
        bytes().push_back(event.boolean ? kTrueTag : kFalseTag);
        break;
      case EventKind::kInteger:
        integer(event.integer);
        break;
      case EventKind::kUnsigned:
        bytes().push_back(kPositiveTag);
        number(event.large);
        break;
      case EventKind::kDouble:
        bytes().push_back(kDoubleTag);
        eight_bytes(event.number);
        break;
      case EventKind::kString:
        bytes().push_back(kStringTag);
        string(event.string);
        break;
      case EventKind::kKey:
        key(event.string);
        break;
      case EventKind::kObject:
      case EventKind::kArray:
        bytes().push_back(event.kind == EventKind::kObject ? kObjectTag : kArrayTag);
        open_.push_back(bytes().size());
        eight_bytes(std::uint64_t{0});
        break;
      case EventKind::kEndObject:
      case EventKind::kEndArray: {
        const std::uint64_t end = bytes().size();
        std::memcpy(bytes().data() + open_.back(), &end, sizeof(end));
        open_.pop_back();
        break;
      }
    }
    return {};
  }

 private:
  std::vector<std::uint8_t>& bytes() { return tape_.bytes_; }

  void integer(std::int64_t value) {
    if (value >= 0 && value < kNullTag) {
      bytes().push_back(static_cast<std::uint8_t>(value));
      return;
    }
    bytes().push_back(value < 0 ? kNegativeTag : kPositiveTag);
    number(static_cast<std::uint64_t>(value < 0 ? -1 - value : value));
  }

  /// 7 bits a byte, the lowest first.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes().push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes().push_back(static_cast<std::uint8_t>(value));
  }

  template <class T>
  void eight_bytes(T value) {
    static_assert(sizeof(value) == 8);
    bytes().resize(bytes().size() + sizeof(value));
    std::memcpy(bytes().data() + bytes().size() - sizeof(value), &value, sizeof(value));
  }

  void string(std::string_view string) {
    number(string.size());
    bytes().insert(bytes().end(), string.begin(), string.end());
  }

  void key(std::string_view name) {
    name_ = name;
    const auto found = tape_.keys_.find(name_);
    number(found == tape_.keys_.end() ? kUnexpectedKey : found->second);
    if (found == tape_.keys_.end()) string(name);
  }

  JsonTape& tape_;
  const std::optional<Stop> stop_;
  std::vector<JsonTape::Place> open_;  // where the ends of objects and arrays are to be written
  std::string name_;
};

JsonTape::JsonTape(ByteSource json, JsonKeys keys, int deepest)
    : json_(std::move(json)), deepest_(deepest), keys_(std::move(keys)) {
  for (const auto& [name, number] : keys_) {
    names_.resize(std::max<std::size_t>(names_.size(), std::size_t{number} + 1));
    names_[number] = name;
  }
}

Result<JsonTape> JsonTape::parse(const ByteSource& json, JsonKeys keys, int deepest) {
  return without_exceptions([&]() -> Result<JsonTape> {
    JsonTape tape(json, std::move(keys), deepest);
    JsonTapeWriter writer(tape);
    ETSTREAM_TRY(parse_json(json, writer, deepest));
    return tape;
  });
}

std::uint64_t JsonTape::number_at(Place& place) const {
  std::uint64_t out = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes_[place++];
    out |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return out;
  }
}

JsonTape::Value JsonTape::at(Place place) const {
  const auto string_at = [&](Place at, std::size_t size) {
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + at, size);
  };
  Value out;
  const std::uint8_t tag = bytes_[place++];
  out.kind = Kind::kInteger;
  switch (tag) {
    case kNullTag:
      out.kind = Kind::kNull;
      break;
    case kFalseTag:
    case kTrueTag:
      out.kind = Kind::kBool;
      out.boolean = tag == kTrueTag;
      break;
    case kPositiveTag:
      out.large = number_at(place);
      out.integer = static_cast<std::int64_t>(out.large);
      if (out.integer < 0) out.kind = Kind::kUnsigned;
      break;
    case kNegativeTag:
      out.integer = -1 - static_cast<std::int64_t>(number_at(place));
      break;
    case kDoubleTag:
      out.kind = Kind::kDouble;
      std::memcpy(&out.number, bytes_.data() + place, sizeof(out.number));
      place += sizeof(out.number);
      break;
    case kStringTag: {
      out.kind = Kind::kString;
      const std::uint64_t size = number_at(place);
      out.string = string_at(place, size);
      place += size;
      break;
    }
    case kObjectTag:
    case kArrayTag:
      out.kind = tag == kObjectTag ? Kind::kObject : Kind::kArray;
      out.first = place + sizeof(out.end);
      std::memcpy(&out.end, bytes_.data() + place, sizeof(out.end));
      return out;
    default:
      out.integer = tag;
      break;
  }
  out.end = place;
  return out;
}

JsonTape::Key JsonTape::key_at(Place place) const {
  Key out;
  const auto number = static_cast<std::uint32_t>(number_at(place));
  if (number == kUnexpectedKey) {
    const std::uint64_t size = number_at(place);
    out.name = {reinterpret_cast<const char*>(bytes_.data()) + place, size};
    place += size;
  } else {
    out.number = number;
    out.name = names_[number];
  }
  out.value = place;
  return out;
}

std::string JsonTape::path_to(Place place) const {
  std::string out;
  Value value = at(kRoot);
  Place next = kRoot;
  while (next != place && place < value.end) {
    if (value.kind != Kind::kObject && value.kind != Kind::kArray) break;
    Place entry = value.first;
    for (std::uint64_t i = 0;; ++i) {
      const bool is_object = value.kind == Kind::kObject;
      const Key key = is_object ? key_at(entry) : Key{{}, {}, entry};
      const Value child = at(key.value);
      if (place >= child.end) {
        entry = child.end;
        continue;
      }
      if (entry == place && is_object) return out;  // a key is told of where its object is
      out += is_object ? text("{}{}", out.empty() ? "" : ".", printable(key.name)) : text("[{}]", i);
      next = key.value;
      value = child;
      break;
    }
  }
  return out;
}

Error JsonTape::at_line(Place place, const Error& error) const {
  JsonTape again(json_, keys_, deepest_);
  JsonTapeWriter writer(again, JsonTapeWriter::Stop{place, error});
  auto found = parse_json(json_, writer, deepest_);
  // A file that has changed has no such line.
  if (found) return make_error(error.code, "{}: {}", json_.name(), error.message);
  return std::move(found).error();
}

Error JsonTape::error_at(Place place, ErrorCode code, std::string_view message) const {
  const std::string path = path_to(place);
  return at_line(place, make_error(code, "{}{}{}", path, path.empty() ? "" : ": ", message));
}

}  // namespace etstream
