// SPDX-License-Identifier: BSD-3-Clause
#include "formats/safetensors/safetensors.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/file_plan.h"
#include "etstream/checkpoint.h"
#include "etstream/tensor.h"
#include "flatbuffer/json/json_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "formats/segments/file_kind.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

constexpr std::size_t kMostNumbers = 64;  // of dimensions; torch has as many

struct SafetensorsType {
  std::string_view name;
  std::uint64_t bits;              // of an element
  std::optional<ScalarType> type;  // none for those that ExecuTorch lacks
};

/// The types in the order of the reference implementation, by which writers sort.
constexpr auto kSafetensorsTypes = std::to_array<SafetensorsType>({
    {"BOOL", 8, ScalarType::kBool},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, ScalarType::kUInt8},
    {"I8", 8, ScalarType::kInt8},
    {"F8_E5M2", 8, ScalarType::kFloat8E5M2},
    {"F8_E4M3", 8, ScalarType::kFloat8E4M3FN},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, ScalarType::kFloat8E4M3FNUZ},
    {"F8_E5M2FNUZ", 8, ScalarType::kFloat8E5M2FNUZ},
    {"I16", 16, ScalarType::kInt16},
    {"U16", 16, ScalarType::kUInt16},
    {"F16", 16, ScalarType::kFloat16},
    {"BF16", 16, ScalarType::kBFloat16},
    {"I32", 32, ScalarType::kInt32},
    {"U32", 32, ScalarType::kUInt32},
    {"F32", 32, ScalarType::kFloat32},
    {"C64", 64, ScalarType::kComplex64},
    {"F64", 64, ScalarType::kFloat64},
    {"I64", 64, ScalarType::kInt64},
    {"U64", 64, ScalarType::kUInt64},
});

const SafetensorsType* find_type(std::string_view name) {
  const auto* const found = std::ranges::find(kSafetensorsTypes, name, &SafetensorsType::name);
  return found == kSafetensorsTypes.end() ? nullptr : found;
}

SafetensorsDtype dtype_of(const SafetensorsType& type) {
  return {type.name, static_cast<std::size_t>(&type - kSafetensorsTypes.data())};
}

/// Returns how many bits a tensor takes, as the reference implementation counts; nothing if over 2^64 - 1.
std::optional<std::uint64_t> bits_of(const SafetensorsType& type, std::span<const std::uint64_t> shape) {
  auto elements = std::optional<std::uint64_t>(1);
  for (const std::uint64_t size : shape) {
    if (elements) elements = checked_multiply(*elements, size);
  }
  return elements ? checked_multiply(*elements, type.bits) : std::nullopt;
}

/// Returns whether a tensor takes exactly `bytes` whole bytes.
bool has_size(const SafetensorsType& type, std::span<const std::uint64_t> shape, std::uint64_t bytes) {
  const auto bits = bits_of(type, shape);
  return bits && *bits % 8 == 0 && *bits / 8 == bytes;
}

/// Describes the size of a tensor: "6", or what is wrong with it.
std::string size_text(const SafetensorsType& type, std::span<const std::uint64_t> shape) {
  const auto bits = bits_of(type, shape);
  if (!bits) return "over 2^61 - 1";
  return *bits % 8 == 0 ? std::to_string(*bits / 8) : text("whole bytes, and not {} bits,", *bits);
}

using Numbers = std::vector<std::uint64_t>;

/// A tensor in the header, as far as it has been read.
struct HeaderEntry {
  CheckpointTensor tensor;
  bool has_type = false;
  std::optional<Numbers> shape;
  std::optional<Numbers> offsets;
};

/// Reads the header: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}, and
/// "__metadata__" with strings, which is not about the tensors.
class HeaderHandler final : public JsonHandler {
 public:
  /// `data` holds the bytes that the offsets are in.
  explicit HeaderHandler(const ByteSource& data) : data_(data) {}

  Result<void> on(const JsonEvent& event) override {
    switch (state_) {
      case State::kStart:
        return step(event, JsonEvent::Kind::kObject, State::kTop);
      case State::kTop:
        return on_top(event);
      case State::kBeginMetadata:
        if (event.kind == JsonEvent::Kind::kNull) {
          state_ = State::kTop;
          return {};
        }
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
      case State::kOther:
        return on_other(event);
    }
    return {};
  }

  /// Returns the tensors in the order of their data, which they must cover from its start to its end.
  Result<SafetensorsFile> finish() {
    if (const auto repeated = first_repeated(tensors_, &CheckpointTensor::name)) {
      return error_in(ErrorCode::kCorrupt, data_.name(), "tensor {} comes twice", quote(*repeated));
    }
    // An empty tensor comes before the one that begins at its place.
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
    kNumbers,
    kOther
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
      if (std::exchange(seen_metadata_, true)) {
        return error_in(ErrorCode::kCorrupt, data_.name(), "__metadata__ comes twice");
      }
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
    std::optional<Numbers>* numbers = nullptr;
    if (event.string == "shape") numbers = &entry_->shape;
    if (event.string == "data_offsets") numbers = &entry_->offsets;
    const bool is_type = event.string == "dtype";
    if (is_type ? std::exchange(entry_->has_type, true) : numbers != nullptr && *numbers) {
      return unexpected(event, "each of dtype, shape and data_offsets once");
    }
    if (is_type) {
      state_ = State::kType;
    } else if (numbers != nullptr) {
      numbers_ = &numbers->emplace();
      state_ = State::kBeginNumbers;
    } else {
      state_ = State::kOther;
    }
    return {};
  }

  /// Skips the value of a member that the format lacks.
  Result<void> on_other(const JsonEvent& event) {
    const auto is = [&](auto... kinds) { return ((event.kind == kinds) || ...); };
    if (is(JsonEvent::Kind::kObject, JsonEvent::Kind::kArray)) ++depth_;
    if (is(JsonEvent::Kind::kEndObject, JsonEvent::Kind::kEndArray)) --depth_;
    if (depth_ == 0 && !is(JsonEvent::Kind::kKey)) state_ = State::kEntry;
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
    if (const SafetensorsType* const type = find_type(tensor.type)) {
      if (!has_size(*type, shape, end - begin)) {
        return corrupt("its data is {}, expected {} from its shape and {}", counted(end - begin, "byte"),
                       size_text(*type, shape), tensor.type);
      }
      if (type->type) tensor.layout = contiguous_layout(*type->type, shape);
    }
    if (!tensor.layout) tensor.shape = std::move(*entry_->shape);
    tensors_.push_back(std::move(tensor));
    entry_.reset();
    state_ = State::kTop;
    return {};
  }

  const ByteSource& data_;
  std::vector<CheckpointTensor> tensors_;
  bool seen_metadata_ = false;
  bool has_metadata_ = false;
  int depth_ = 0;  // of what a member holds that is passed over
  State state_ = State::kStart;
  std::optional<HeaderEntry> entry_;  // that is being read
  Numbers* numbers_ = nullptr;        // what the array that is being read fills
};

Result<SafetensorsFile> read_safetensors(const ByteSource& file) {
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

constexpr SafetensorsStyle kStyle = {R"({"__metadata__":{"format":"pt"})", &json_string, "tensors",
                                     "safetensors file"};

Result<std::vector<StoredTensor>> sorted_tensors(const Checkpoint& checkpoint) {
  std::vector<StoredTensor> out;
  out.reserve(checkpoint.tensors.size());
  std::vector<std::string_view> names = {"__metadata__"};
  names.reserve(checkpoint.tensors.size() + 1);
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    ETSTREAM_ASSIGN(const SafetensorsDtype dtype, safetensors_dtype(tensor));
    out.push_back({&tensor, dtype});
    names.emplace_back(tensor.name);
  }
  if (const auto repeated = first_repeated(names)) {
    const std::string name = quote(*repeated);
    if (*repeated != names.front()) {
      return make_error(ErrorCode::kInvalidArgument, "tensor {} comes twice", name);
    }
    return with_advice(
        make_error(ErrorCode::kInvalidArgument, "tensor {} has a name that safetensors reserves", name),
        {"give it another"});
  }
  std::ranges::sort(out, [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(b.dtype.rank, a.tensor->name) < std::tie(a.dtype.rank, b.tensor->name);
  });
  return out;
}

}  // namespace

std::string type_without_layout(const CheckpointTensor& tensor) {
  const bool is_too_large = tensor.shape && find_scalar_type(tensor.type);
  return tensor.type + (is_too_large ? " " + list_text(*tensor.shape) : "");
}

std::optional<SafetensorsDtype> safetensors_dtype(ScalarType type) noexcept {
  const auto* const found = std::ranges::find(kSafetensorsTypes, std::optional(type), &SafetensorsType::type);
  if (found == kSafetensorsTypes.end()) return std::nullopt;
  return dtype_of(*found);
}

std::optional<SafetensorsDtype> safetensors_dtype(std::string_view type, std::span<const std::uint64_t> shape,
                                                  std::uint64_t size) {
  const SafetensorsType* const found = find_type(type);
  if (found == nullptr || !has_size(*found, shape, size)) return std::nullopt;
  return dtype_of(*found);
}

Result<SafetensorsFile> open_safetensors(const ByteSource& file) {
  return unless_other(file, {"safetensors", {FileKind::kSafetensors}}, read_safetensors(file));
}

Result<SafetensorsDtype> safetensors_dtype(const CheckpointTensor& tensor) {
  const auto unsupported = [&]<class... Arguments>(Template<Arguments...> words,
                                                   const Arguments&... arguments) {
    return error_in(ErrorCode::kUnsupported, tensor.data.name(), "tensor {} {}", quote(tensor.name),
                    text(words, arguments...));
  };
  if (!tensor.layout && tensor.shape) {
    const auto dtype = safetensors_dtype(tensor.type, *tensor.shape, tensor.data.size());
    if (dtype) return *dtype;
  }
  if (!tensor.layout) {
    return with_advice(
        unsupported("{}, which safetensors can't hold",
                    tensor.type.empty() ? "has no layout" : "is of type " + printable(tensor.type)),
        {"leave it out"});
  }
  const auto dtype = safetensors_dtype(tensor.layout->scalar_type);
  if (!dtype) {
    return unsupported("is of type {}, which safetensors has no name for",
                       name_of(tensor.layout->scalar_type));
  }
  if (!lie_alike(tensor.layout->sizes, tensor.layout->dim_order,
                 contiguous_dim_order(tensor.layout->sizes.size()))) {
    return unsupported("has its elements in the order {} of its dimensions, which safetensors can't say",
                       list_text(tensor.layout->dim_order));
  }
  const std::vector<std::uint64_t> shape(tensor.layout->sizes.begin(), tensor.layout->sizes.end());
  if (!safetensors_dtype(dtype->name, shape, tensor.data.size())) {
    return unsupported("has {}, expected those of {}", counted(tensor.data.size(), "byte"),
                       describe(*tensor.layout));
  }
  return *dtype;
}

Result<std::vector<std::byte>> safetensors_header(const std::vector<StoredTensor>& tensors,
                                                  const SafetensorsStyle& style) {
  std::string json(style.begin);
  std::uint64_t begin = 0;
  for (const auto& [tensor, dtype] : tensors) {
    const auto name = style.spell(tensor->name);
    if (!name) {
      return error_in(ErrorCode::kUnsupported, tensor->data.name(),
                      "the name of tensor {} is not UTF-8, as JSON needs it", quote(tensor->name));
    }
    const auto end = checked_add(begin, tensor->data.size());
    if (!end) return make_error(ErrorCode::kTooLarge, "the {} would be over 2^64 - 1 bytes", style.tensors);
    json += text(R"({}{}:{{"dtype":"{}","shape":[)", json == "{" ? "" : ",", *name, dtype.name);
    const std::size_t before = json.size();
    const auto add_sizes = [&](const auto& sizes) {
      for (const auto size : sizes) json += text("{}{}", json.size() == before ? "" : ",", size);
    };
    if (tensor->layout) {
      add_sizes(tensor->layout->sizes);
    } else {
      add_sizes(*tensor->shape);
    }
    json += text(R"(],"data_offsets":[{},{}]}})", begin, *end);
    begin = *end;
  }
  json += '}';
  const std::uint64_t unit = std::max<std::uint64_t>(8, style.alignment);
  json.append(static_cast<std::size_t>(padding_to(json.size() + kSafetensorsLengthSize, unit)), ' ');
  if (json.size() > kLongestSafetensorsHeader) {
    return make_error(ErrorCode::kTooLarge, "the header of the {} would be {} bytes; expected at most {}",
                      style.file, json.size(), kLongestSafetensorsHeader);
  }
  std::vector<std::byte> out(kSafetensorsLengthSize + json.size());
  const auto length = static_cast<std::uint64_t>(json.size());
  std::ranges::copy(std::as_bytes(std::span(&length, 1)), out.begin());
  std::ranges::copy(std::as_bytes(std::span(json)), out.begin() + kSafetensorsLengthSize);
  return out;
}

Result<FilePlan> plan_safetensors(const Checkpoint& checkpoint) {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const auto tensors, sorted_tensors(checkpoint));
    ETSTREAM_ASSIGN(auto header, safetensors_header(tensors, kStyle));
    FilePlan plan;
    plan.metadata_size = header.size();
    ETSTREAM_TRY(append(plan, 8, "header", ByteSource::owned(std::move(header))));
    for (const StoredTensor& stored : tensors) {
      ETSTREAM_TRY(append(plan, 1, stored.tensor->name, stored.tensor->data));
    }
    plan.payload_size = plan.size - plan.metadata_size;
    return plan;
  });
}

}  // namespace etstream
