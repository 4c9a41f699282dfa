// SPDX-License-Identifier: BSD-3-Clause
#include "format/safetensors.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/checked.h"
#include "base/text.h"
#include "base/try.h"
#include "schema/json_stream.h"

namespace etstream {
namespace {

constexpr std::uint64_t kLengthSize = 8;
constexpr std::uint64_t kLongestSafetensorsHeader = 100'000'000;

struct SafetensorsType {
  std::string_view name;
  ScalarType type;
};

constexpr std::array kSafetensorsTypes = {
    SafetensorsType{"BOOL", ScalarType::kBool},
    SafetensorsType{"U8", ScalarType::kUInt8},
    SafetensorsType{"I8", ScalarType::kInt8},
    SafetensorsType{"U16", ScalarType::kUInt16},
    SafetensorsType{"I16", ScalarType::kInt16},
    SafetensorsType{"U32", ScalarType::kUInt32},
    SafetensorsType{"I32", ScalarType::kInt32},
    SafetensorsType{"U64", ScalarType::kUInt64},
    SafetensorsType{"I64", ScalarType::kInt64},
    SafetensorsType{"F16", ScalarType::kFloat16},
    SafetensorsType{"BF16", ScalarType::kBFloat16},
    SafetensorsType{"F32", ScalarType::kFloat32},
    SafetensorsType{"F64", ScalarType::kFloat64},
    SafetensorsType{"F8_E5M2", ScalarType::kFloat8E5M2},
    SafetensorsType{"F8_E4M3", ScalarType::kFloat8E4M3FN},
    SafetensorsType{"F8_E5M2FNUZ", ScalarType::kFloat8E5M2FNUZ},
    SafetensorsType{"F8_E4M3FNUZ", ScalarType::kFloat8E4M3FNUZ},
};

std::optional<ScalarType> find_type(std::string_view name) {
  for (const SafetensorsType& known : kSafetensorsTypes) {
    if (known.name == name) return known.type;
  }
  return std::nullopt;
}

/// The header: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}, and
/// "__metadata__" with strings, which says nothing of the tensors.
class HeaderHandler final : public JsonHandler {
 public:
  /// `data` is what the offsets are relative to.
  HeaderHandler(const ByteSource& data, SafetensorsIndex& index) : data_(data), index_(index) {}

  Result<void> on(const JsonEvent& event) override {
    switch (state_) {
      case State::kStart:
        return step(event, JsonEvent::Kind::kBeginObject, State::kTop);
      case State::kTop:
        return on_top(event);
      case State::kBeginMetadata:
        return step(event, JsonEvent::Kind::kBeginObject, State::kMetadata);
      case State::kMetadata:
        return on_metadata(event);
      case State::kBeginEntry:
        return step(event, JsonEvent::Kind::kBeginObject, State::kEntry);
      case State::kEntry:
        return on_entry(event);
      case State::kType:
        entry_.dtype = event.string;
        return step(event, JsonEvent::Kind::kString, State::kEntry);
      case State::kBeginNumbers:
        return step(event, JsonEvent::Kind::kBeginArray, State::kNumbers);
      case State::kNumbers:
        return on_number(event);
    }
    return {};
  }

  /// Whether the tensors cover the data from its start to its end, as they must.
  Result<void> check_cover() {
    std::sort(ranges_.begin(), ranges_.end());
    std::uint64_t end = 0;
    for (const auto& [range_begin, range_end] : ranges_) {
      if (range_begin != end) {
        return make_error(ErrorCode::kCorrupt, data_.name(), ": tensor data at data offset ", range_begin,
                          range_begin < end ? " overlaps other data" : " follows a gap", "; expected offset ",
                          end);
      }
      end = range_end;
    }
    if (end == data_.size()) return {};
    return make_error(ErrorCode::kCorrupt, data_.name(), ": the tensors' data ends at data offset ", end,
                      ", the file's at ", data_.size());
  }

 private:
  enum class State {
    kStart,
    kTop,
    kBeginMetadata,
    kMetadata,
    kBeginEntry,
    kEntry,
    kType,
    kBeginNumbers,
    kNumbers
  };

  Result<void> step(const JsonEvent& event, JsonEvent::Kind expected, State next) {
    if (event.kind != expected) return unexpected(event, name_of(expected));
    state_ = next;
    return {};
  }

  Error unexpected(const JsonEvent& event, std::string_view expected) const {
    return make_error(ErrorCode::kCorrupt, name_.empty() ? "" : text("tensor ", quote(name_), ": "),
                      "expected ", expected, ", found ", name_of(event.kind));
  }

  Result<void> on_top(const JsonEvent& event) {
    if (event.kind != JsonEvent::Kind::kKey) return {};  // the end
    if (event.string == "__metadata__") {
      state_ = State::kBeginMetadata;
      return {};
    }
    name_ = event.string;
    entry_ = {};
    offsets_.clear();
    seen_type_ = seen_shape_ = false;
    state_ = State::kBeginEntry;
    return {};
  }

  Result<void> on_metadata(const JsonEvent& event) {
    if (event.kind == JsonEvent::Kind::kEndObject) {
      state_ = State::kTop;
    } else if (event.kind != JsonEvent::Kind::kKey && event.kind != JsonEvent::Kind::kString) {
      return unexpected(event, "a string in __metadata__");
    }
    return {};
  }

  Result<void> on_entry(const JsonEvent& event) {
    if (event.kind == JsonEvent::Kind::kEndObject) return finish_entry();
    if (event.string == "dtype" && !seen_type_) {
      seen_type_ = true;
      state_ = State::kType;
    } else if (event.string == "shape" && !seen_shape_) {
      seen_shape_ = true;
      numbers_ = &entry_.shape;
      state_ = State::kBeginNumbers;
    } else if (event.string == "data_offsets" && offsets_.empty()) {
      numbers_ = &offsets_;
      state_ = State::kBeginNumbers;
    } else {
      return unexpected(event, "each of dtype, shape and data_offsets once");
    }
    return {};
  }

  Result<void> on_number(const JsonEvent& event) {
    if (event.kind == JsonEvent::Kind::kEndArray) {
      state_ = State::kEntry;
      return {};
    }
    if (event.kind != JsonEvent::Kind::kInteger || event.integer < 0) {
      return unexpected(event, "an integer that is not negative");
    }
    numbers_->push_back(static_cast<std::uint64_t>(event.integer));
    return {};
  }

  Result<void> finish_entry() {
    const auto corrupt = [&](const auto&... what) {
      return make_error(ErrorCode::kCorrupt, "tensor ", quote(name_), ": ", what...);
    };
    if (!seen_type_ || !seen_shape_ || offsets_.size() != 2) {
      return corrupt("expected dtype, shape and two data_offsets");
    }
    const auto [begin, end] = std::array{offsets_[0], offsets_[1]};
    if (begin > end || end > data_.size()) {
      return corrupt("data_offsets ", begin, " to ", end, " are not inside the ", data_.size(),
                     " bytes of data");
    }
    entry_.scalar_type = find_type(entry_.dtype);
    if (entry_.scalar_type) {
      auto bytes = std::optional(item_size(*entry_.scalar_type));
      for (const std::uint64_t size : entry_.shape) {
        if (bytes) bytes = checked_multiply(*bytes, size);
      }
      if (bytes != end - begin) {
        return corrupt("its data is ", end - begin, " bytes, expected ",
                       bytes ? std::to_string(*bytes) : "over 2^64 - 1", " from its shape and ",
                       entry_.dtype);
      }
    }
    ETSTREAM_ASSIGN(entry_.data, data_.slice(begin, end - begin));
    if (!index_.try_emplace(name_, std::move(entry_)).second) return corrupt("it comes twice");
    ranges_.emplace_back(begin, end);
    name_.clear();
    state_ = State::kTop;
    return {};
  }

  const ByteSource& data_;
  SafetensorsIndex& index_;
  State state_ = State::kStart;
  std::string name_;  // of the tensor that is being read
  SafetensorsEntry entry_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint64_t>* numbers_ = nullptr;  // what the array that is being read fills
  bool seen_type_ = false;
  bool seen_shape_ = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace

Result<SafetensorsIndex> open_safetensors(const ByteSource& file) {
  std::uint64_t length = 0;
  if (file.size() >= kLengthSize) {
    ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(&length, 1))));
  }
  if (file.size() < kLengthSize || length > kLongestSafetensorsHeader || length > file.size() - kLengthSize) {
    return make_error(ErrorCode::kCorrupt, file.name(),
                      ": not a safetensors file: expected the length of a "
                      "header of at most ",
                      kLongestSafetensorsHeader,
                      " bytes that is inside the file at offset 0, "
                      "found ",
                      length, " in a file of ", file.size(), " bytes");
  }
  ETSTREAM_ASSIGN(const ByteSource header, file.slice(kLengthSize, length));
  ETSTREAM_ASSIGN(const ByteSource data,
                  file.slice(kLengthSize + length, file.size() - kLengthSize - length));
  SafetensorsIndex index;
  HeaderHandler handler(data, index);
  ETSTREAM_TRY(parse_json(header, handler));
  ETSTREAM_TRY(handler.check_cover());
  return index;
}

}  // namespace etstream
