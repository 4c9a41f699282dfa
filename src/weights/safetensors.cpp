// SPDX-License-Identifier: BSD-3-Clause
#include "weights/safetensors.h"

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/repeated.h"
#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/json_stream.h"
#include "tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::size_t kMostNumbers = 64;  // of dimensions; torch has as many

struct SafetensorsType {
  std::string_view name;
  ScalarType type;
};

/// In the order of the reference implementation, by which writers sort.
constexpr std::array kSafetensorsTypes = {
    SafetensorsType{"BOOL", ScalarType::kBool},
    SafetensorsType{"U8", ScalarType::kUInt8},
    SafetensorsType{"I8", ScalarType::kInt8},
    SafetensorsType{"F8_E5M2", ScalarType::kFloat8E5M2},
    SafetensorsType{"F8_E4M3", ScalarType::kFloat8E4M3FN},
    SafetensorsType{"F8_E4M3FNUZ", ScalarType::kFloat8E4M3FNUZ},
    SafetensorsType{"F8_E5M2FNUZ", ScalarType::kFloat8E5M2FNUZ},
    SafetensorsType{"I16", ScalarType::kInt16},
    SafetensorsType{"U16", ScalarType::kUInt16},
    SafetensorsType{"F16", ScalarType::kFloat16},
    SafetensorsType{"BF16", ScalarType::kBFloat16},
    SafetensorsType{"I32", ScalarType::kInt32},
    SafetensorsType{"U32", ScalarType::kUInt32},
    SafetensorsType{"F32", ScalarType::kFloat32},
    SafetensorsType{"C64", ScalarType::kComplex64},
    SafetensorsType{"F64", ScalarType::kFloat64},
    SafetensorsType{"I64", ScalarType::kInt64},
    SafetensorsType{"U64", ScalarType::kUInt64},
};

std::optional<ScalarType> find_type(std::string_view name) {
  for (const SafetensorsType& known : kSafetensorsTypes) {
    if (known.name == name) return known.type;
  }
  return std::nullopt;
}

using Numbers = std::vector<std::uint64_t>;

/// A tensor in the header, as far as it was read.
struct HeaderEntry {
  CheckpointTensor tensor;
  bool has_type = false;
  std::optional<Numbers> shape;
  std::optional<Numbers> offsets;
};

/// The header: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}, and
/// "__metadata__" with strings, which says nothing of the tensors.
class HeaderHandler final : public JsonHandler {
 public:
  /// `data` is what the offsets are relative to.
  explicit HeaderHandler(const ByteSource& data) : data_(data) {}

  Result<void> on(const JsonEvent& event) override {
    switch (state_) {
      case State::kStart:
        return step(event, JsonEvent::Kind::kObject, State::kTop);
      case State::kTop:
        return on_top(event);
      case State::kBeginMetadata:
        return step(event, JsonEvent::Kind::kObject, State::kMetadata);
      case State::kMetadata:
        return on_metadata(event);
      case State::kBeginEntry:
        return step(event, JsonEvent::Kind::kObject, State::kEntry);
      case State::kEntry:
        return on_entry(event);
      case State::kType:
        entry_->tensor.type = event.string;
        return step(event, JsonEvent::Kind::kString, State::kEntry);
      case State::kBeginNumbers:
        return step(event, JsonEvent::Kind::kArray, State::kNumbers);
      case State::kNumbers:
        return on_number(event);
    }
    return {};
  }

  /// The tensors, in the order of their data, which they cover from its start to its end, as they must.
  Result<SafetensorsFile> finish() {
    if (const auto repeated = first_repeated(tensors_, &CheckpointTensor::name)) {
      return error_in(ErrorCode::kCorrupt, data_.name(), "tensor {} comes twice", quote(*repeated));
    }
    // An empty one stands before the one that begins where it is.
    const auto place = [&](const CheckpointTensor& tensor) {
      return std::pair(*tensor.data.offset_in(data_), tensor.data.size());
    };
    if (!std::ranges::is_sorted(tensors_, {}, place)) std::ranges::stable_sort(tensors_, {}, place);
    std::uint64_t end = 0;
    for (const CheckpointTensor& tensor : tensors_) {
      const std::uint64_t begin = *tensor.data.offset_in(data_);
      if (begin != end) {
        return error_in(ErrorCode::kCorrupt, data_.name(),
                        "tensor data at data offset {}{}; expected offset {}", begin,
                        begin < end ? " overlaps other data" : " follows a gap", end);
      }
      end = begin + tensor.data.size();
    }
    if (end == data_.size()) return SafetensorsFile{std::move(tensors_), has_metadata_};
    return error_in(ErrorCode::kCorrupt, data_.name(),
                    "the tensors' data ends at data offset {}, the file's at {}", end, data_.size());
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
    return make_error(ErrorCode::kCorrupt, "{}expected {}, found {}",
                      entry_ ? text("tensor {}: ", quote(entry_->tensor.name)) : "", expected,
                      name_of(event.kind));
  }

  Result<void> on_top(const JsonEvent& event) {
    if (event.kind != JsonEvent::Kind::kKey) return {};  // the end
    if (event.string == "__metadata__") {
      state_ = State::kBeginMetadata;
      return {};
    }
    entry_.emplace().tensor.name = event.string;
    state_ = State::kBeginEntry;
    return {};
  }

  Result<void> on_metadata(const JsonEvent& event) {
    if (event.kind == JsonEvent::Kind::kEndObject) {
      state_ = State::kTop;
    } else if (event.kind != JsonEvent::Kind::kKey && event.kind != JsonEvent::Kind::kString) {
      return unexpected(event, "a string in __metadata__");
    } else {
      has_metadata_ = true;
    }
    return {};
  }

  Result<void> on_entry(const JsonEvent& event) {
    if (event.kind == JsonEvent::Kind::kEndObject) return finish_entry();
    if (event.string == "dtype" && !std::exchange(entry_->has_type, true)) {
      state_ = State::kType;
      return {};
    }
    std::optional<Numbers>* numbers = nullptr;
    if (event.string == "shape") numbers = &entry_->shape;
    if (event.string == "data_offsets") numbers = &entry_->offsets;
    if (numbers == nullptr || *numbers) {
      return unexpected(event, "each of dtype, shape and data_offsets once");
    }
    numbers_ = &numbers->emplace();
    state_ = State::kBeginNumbers;
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
    if (numbers_->size() == kMostNumbers) {
      return unexpected(event, text("at most {} numbers in a row", kMostNumbers));
    }
    numbers_->push_back(static_cast<std::uint64_t>(event.integer));
    return {};
  }

  Result<void> finish_entry() {
    CheckpointTensor& tensor = entry_->tensor;
    const auto corrupt = [&]<class... Arguments>(Template<Arguments...> words,
                                                 const Arguments&... arguments) {
      return make_error(ErrorCode::kCorrupt, "tensor {}: {}", quote(tensor.name), text(words, arguments...));
    };
    if (!entry_->has_type || !entry_->shape || !entry_->offsets || entry_->offsets->size() != 2) {
      return corrupt("expected dtype, shape and two data_offsets");
    }
    const Numbers& shape = *entry_->shape;
    const std::uint64_t begin = entry_->offsets->front();
    const std::uint64_t end = entry_->offsets->back();
    if (begin > end || end > data_.size()) {
      return corrupt("data_offsets {} to {} are not inside the {} bytes of data", begin, end, data_.size());
    }
    ETSTREAM_ASSIGN(tensor.data, data_.slice(begin, end - begin));
    if (const auto type = find_type(tensor.type)) {
      auto bytes = std::optional(item_size(*type));
      for (const std::uint64_t size : shape) {
        if (bytes) bytes = checked_multiply(*bytes, size);
      }
      if (bytes != end - begin) {
        return corrupt("its data is {} bytes, expected {} from its shape and {}", end - begin,
                       bytes ? std::to_string(*bytes) : "over 2^64 - 1", tensor.type);
      }
      tensor.layout = contiguous_layout(*type, shape);
      if (!tensor.layout) tensor.type += " " + list_text(shape);
    }
    tensors_.push_back(std::move(tensor));
    entry_.reset();
    state_ = State::kTop;
    return {};
  }

  const ByteSource& data_;
  std::vector<CheckpointTensor> tensors_;
  bool has_metadata_ = false;
  State state_ = State::kStart;
  std::optional<HeaderEntry> entry_;  // that is being read
  Numbers* numbers_ = nullptr;        // what the array that is being read fills
};

}  // namespace

std::optional<SafetensorsDtype> safetensors_dtype(ScalarType type) noexcept {
  for (std::size_t i = 0; i < kSafetensorsTypes.size(); ++i) {
    if (kSafetensorsTypes[i].type == type) return SafetensorsDtype{kSafetensorsTypes[i].name, i};
  }
  return std::nullopt;
}

Result<SafetensorsFile> open_safetensors(const ByteSource& file) {
  std::uint64_t length = 0;
  if (file.size() >= kSafetensorsLengthSize) {
    ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(&length, 1))));
  }
  if (file.size() < kSafetensorsLengthSize || length > kLongestSafetensorsHeader ||
      length > file.size() - kSafetensorsLengthSize) {
    return error_in(ErrorCode::kCorrupt, file.name(),
                    "not a safetensors file: expected the length of a header of at most {} bytes that "
                    "is inside the file at offset 0, found {} in a file of {} bytes",
                    kLongestSafetensorsHeader, length, file.size());
  }
  ETSTREAM_ASSIGN(const ByteSource header, file.slice(kSafetensorsLengthSize, length));
  ETSTREAM_ASSIGN(const ByteSource data,
                  file.slice(kSafetensorsLengthSize + length, file.size() - kSafetensorsLengthSize - length));
  HeaderHandler handler(data);
  ETSTREAM_TRY(parse_json(header, handler));
  return handler.finish();
}

}  // namespace etstream
