// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {
namespace {

// The first tag. A value on the tape begins with a byte: a tag, which is this number plus the value's kind,
// or an integer below this number, which is the whole value. A tag is followed by a byte for true and false;
// a number for an integer, with the sign in its lowest bit; 8 bytes for a double; the length as a number and
// the characters for a string; the end, in 8 bytes, and then keys and values for an object or array.
constexpr std::uint8_t kFirstTag = 0xf0;

constexpr std::uint32_t kUnexpectedKey = 0;  // its length and it follow

}  // namespace

/// Puts events on a tape.
class JsonTapeWriter final : public JsonHandler {
 public:
  struct Stop {
    JsonTape::Place place;
    const Error& error;
  };

  /// With `stop`, on() returns its error at its place.
  explicit JsonTapeWriter(JsonTape& tape, std::optional<Stop> stop = {}) : tape_(tape), stop_(stop) {}

  Result<void> on(const JsonEvent& event) override {
    using Kind = JsonEvent::Kind;
    const bool is_end = event.kind == Kind::kEndObject || event.kind == Kind::kEndArray;
    if (stop_ && bytes().size() == stop_->place && !is_end) return stop_->error;
    if (event.kind == Kind::kKey) {
      key(event.string);
      return {};
    }
    if (is_end) {
      const std::uint64_t end = bytes().size();
      std::memcpy(bytes().data() + open_.back(), &end, sizeof(end));
      open_.pop_back();
      return {};
    }
    const bool is_small = event.kind == Kind::kInteger && event.integer >= 0 && event.integer < kFirstTag;
    bytes().push_back(
        static_cast<std::uint8_t>(is_small ? event.integer : kFirstTag + static_cast<int>(event.kind)));
    if (event.kind == Kind::kBool) {
      bytes().push_back(event.boolean ? 1 : 0);
    } else if (event.kind == Kind::kInteger && !is_small) {
      const bool is_negative = event.integer < 0;
      const auto above_sign = static_cast<std::uint64_t>(event.integer) << 1;
      number(is_negative ? ~above_sign : above_sign);
    } else if (event.kind == Kind::kUnsigned) {
      number(event.large);
    } else if (event.kind == Kind::kDouble) {
      eight_bytes(event.number);
    } else if (event.kind == Kind::kString) {
      string(event.string);
    } else if (event.kind == Kind::kObject || event.kind == Kind::kArray) {
      open_.push_back(bytes().size());
      eight_bytes(std::uint64_t{0});
    }
    return {};
  }

 private:
  std::vector<std::uint8_t>& bytes() { return tape_.bytes_; }

  /// Writes a number, 7 bits a byte, the lowest first.
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
    const auto found = tape_.keys_.find(name);
    number(found == tape_.keys_.end() ? kUnexpectedKey : found->second);
    if (found == tape_.keys_.end()) string(name);
  }

  JsonTape& tape_;
  const std::optional<Stop> stop_;
  std::vector<JsonTape::Place> open_;  // where the ends of objects and arrays are to be written
};

JsonTape::JsonTape(ByteSource json, JsonKeys keys, int deepest, JsonSyntax syntax)
    : json_(std::move(json)), deepest_(deepest), syntax_(syntax), keys_(std::move(keys)) {
  for (const auto& [name, number] : keys_) {
    names_.resize(std::max<std::size_t>(names_.size(), std::size_t{number} + 1));
    names_[number] = name;
  }
}

Result<JsonTape> JsonTape::parse(const ByteSource& json, JsonKeys keys, int deepest, JsonSyntax syntax) {
  return without_exceptions([&]() -> Result<JsonTape> {
    JsonTape tape(json, std::move(keys), deepest, syntax);
    JsonTapeWriter writer(tape);
    ETSTREAM_TRY(parse_json(json, writer, deepest, syntax));
    return tape;
  });
}

std::uint64_t JsonTape::take_number(Place& place) const {
  std::uint64_t out = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes_[place++];
    out |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return out;
  }
}

std::string_view JsonTape::take_string(Place& place) const {
  const std::uint64_t size = take_number(place);
  const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + place, size);
  place += size;
  return out;
}

template <class T>
T JsonTape::take_eight_bytes(Place& place) const {
  T out{};
  std::memcpy(&out, bytes_.data() + place, sizeof(out));
  place += sizeof(out);
  return out;
}

JsonTape::Value JsonTape::at(Place place) const {
  Value out;
  const std::uint8_t tag = bytes_[place++];
  out.kind = tag < kFirstTag ? Kind::kInteger : static_cast<Kind>(tag - kFirstTag);
  if (tag < kFirstTag) {
    out.integer = tag;
  } else if (out.kind == Kind::kBool) {
    out.boolean = bytes_[place++] != 0;
  } else if (out.kind == Kind::kInteger) {
    const std::uint64_t number = take_number(place);
    out.integer = static_cast<std::int64_t>((number & 1) != 0 ? ~(number >> 1) : number >> 1);
  } else if (out.kind == Kind::kUnsigned) {
    out.large = take_number(place);
  } else if (out.kind == Kind::kDouble) {
    out.number = take_eight_bytes<double>(place);
  } else if (out.kind == Kind::kString) {
    out.string = take_string(place);
  } else if (out.kind == Kind::kObject || out.kind == Kind::kArray) {
    out.end = take_eight_bytes<Place>(place);
    out.first = place;
    return out;
  }
  out.end = place;
  return out;
}

JsonTape::Key JsonTape::key_at(Place place) const {
  Key out;
  const auto number = static_cast<std::uint32_t>(take_number(place));
  if (number != kUnexpectedKey) out.number = number;
  out.name = out.number ? names_[number] : take_string(place);
  out.value = place;
  return out;
}

std::string JsonTape::path_to(Place place) const {
  std::string out;
  for (Place next = kRoot; next != place;) {
    const Value value = at(next);
    const bool is_object = value.kind == Kind::kObject;
    if ((!is_object && value.kind != Kind::kArray) || place >= value.end) break;
    Place entry = value.first;
    for (std::uint64_t i = 0;; ++i) {
      const Key key = is_object ? key_at(entry) : Key{{}, {}, entry};
      const Place end = at(key.value).end;
      if (place < end) {
        if (is_object && entry == place) return out;  // a key is told of where its object is
        out += is_object ? text("{}{}", out.empty() ? "" : ".", printable(key.name)) : text("[{}]", i);
        next = key.value;
        break;
      }
      entry = end;
    }
  }
  return out;
}

Error JsonTape::at_line(Place place, const Error& error) const {
  JsonTape again(json_, keys_, deepest_, syntax_);
  JsonTapeWriter writer(again, JsonTapeWriter::Stop{place, error});
  auto found = parse_json(json_, writer, deepest_, syntax_);
  // A file that has changed may have no such line.
  if (found) return about(error, json_.name(), {});
  return std::move(found).error();
}

Error JsonTape::error_at(Place place, const Error& error) const {
  return at_line(place, about(error, path_to(place)));
}

}  // namespace etstream
