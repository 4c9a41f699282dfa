// SPDX-License-Identifier: BSD-3-Clause
#include "formats/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/read_pieces.h"
#include "formats/segments/file_kind.h"
#include "formats/tensor/dimensions.h"

namespace etstream {
namespace {

struct GgmlType {
  std::uint32_t number;
  std::string_view name;
  std::uint64_t block_elements;
  std::uint64_t block_bytes;
  std::optional<ScalarType> scalar_type;
};

/// The types of ggml in 2026. Its blocks of Q8_1 have 36 bytes; gguf-py 0.19 says 40, the size that they had
/// before.
constexpr auto kGgmlTypes = std::to_array<GgmlType>({
    {0, "F32", 1, 4, ScalarType::kFloat32},
    {1, "F16", 1, 2, ScalarType::kFloat16},
    {2, "Q4_0", 32, 18, {}},
    {3, "Q4_1", 32, 20, {}},
    {6, "Q5_0", 32, 22, {}},
    {7, "Q5_1", 32, 24, {}},
    {8, "Q8_0", 32, 34, {}},
    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    {12, "Q4_K", 256, 144, {}},
    {13, "Q5_K", 256, 176, {}},
    {14, "Q6_K", 256, 210, {}},
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},
    {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},
    {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, ScalarType::kInt8},
    {25, "I16", 1, 2, ScalarType::kInt16},
    {26, "I32", 1, 4, ScalarType::kInt32},
    {27, "I64", 1, 8, ScalarType::kInt64},
    {28, "F64", 1, 8, ScalarType::kFloat64},
    {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, ScalarType::kBFloat16},
    {34, "TQ1_0", 256, 54, {}},
    {35, "TQ2_0", 256, 66, {}},
    {39, "MXFP4", 32, 17, {}},
    {40, "NVFP4", 64, 36, {}},
    {41, "Q1_0", 128, 18, {}},
    {42, "Q2_0", 64, 18, {}},
});

/// Types of values in the metadata.
constexpr std::array<std::uint32_t, 4> kUnsignedTypes = {0, 2, 4, 10};  // of 8, 16, 32 and 64 bits
constexpr std::array<std::uint32_t, 4> kSignedTypes = {1, 3, 5, 11};
constexpr std::uint32_t kMetadataString = 8;
constexpr std::uint32_t kMetadataArray = 9;
/// The size in bytes of a value of each type; 0 for values that begin with their length.
constexpr std::array<std::uint64_t, 13> kMetadataSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr std::uint64_t kStringLeast = 8;     // its length
constexpr std::uint64_t kArrayLeast = 4 + 8;  // a type and a count
constexpr std::uint64_t kMetadataLeast = kStringLeast + 4 + 1;
constexpr std::uint64_t kTensorLeast = kStringLeast + 4 + 4 + 8;
constexpr std::uint64_t kLongestName = 65536;     // ggml's are at most 63 bytes
constexpr std::uint32_t kMostGgufDimensions = 4;  // GGML_MAX_DIMS
constexpr int kDeepestArray = 8;
constexpr std::uint64_t kDefaultAlignment = 32;

class GgufParser {
 public:
  explicit GgufParser(const ByteSource& file) : reader_(file, file.name()) {}

  Result<GgufFile> parse() {
    ETSTREAM_TRY(check_magic_and_version());
    ETSTREAM_ASSIGN(const std::uint64_t tensors, read_count(kTensorLeast, "tensors"));
    ETSTREAM_ASSIGN(const std::uint64_t metadata, read_count(kMetadataLeast, "metadata entries"));
    file_.alignment = kDefaultAlignment;
    const std::uint64_t begin = at_;
    for (std::uint64_t i = 0; i < metadata; ++i) {
      ETSTREAM_TRY(pass_metadata());
      if (is_power_of_two(i + 1)) ETSTREAM_TRY(check_keys());
    }
    ETSTREAM_TRY(check_keys());
    ETSTREAM_TRY(settle_split());
    ETSTREAM_ASSIGN(file_.metadata, reader_.source().slice(begin, at_ - begin));
    for (std::uint64_t i = 0; i < tensors; ++i) {
      ETSTREAM_TRY(read_tensor());
      // Names are also checked before the end: a file that repeats one description for gigabytes must not
      // fill the memory first.
      if (is_power_of_two(i + 1)) ETSTREAM_TRY(check_names());
    }
    ETSTREAM_TRY(check_names());
    ETSTREAM_TRY(find_data());
    return std::move(file_);
  }

 private:
  /// The place of a tensor's bytes, from the start of all data.
  struct Range {
    std::uint64_t offset;
    std::optional<std::uint64_t> size;  // none where the type does not tell it
    std::size_t tensor;
  };

  template <class... Arguments>
  Error corrupt(std::uint64_t offset, Template<Arguments...> words, const Arguments&... arguments) const {
    return error_at(ErrorCode::kCorrupt, {reader_.name(), offset}, words, arguments...);
  }
  template <class... Arguments>
  Error corrupt_tensor(std::uint64_t offset, std::string_view name, Template<Arguments...> words,
                       const Arguments&... arguments) const {
    return corrupt(offset, "tensor {}: {}", quote(name), text(words, arguments...));
  }

  std::uint64_t left() const noexcept { return reader_.source().size() - at_; }

  template <class T>
  Result<T> read() {
    T value{};
    ETSTREAM_TRY(reader_.read(at_, std::as_writable_bytes(std::span(&value, 1))));
    at_ += sizeof(T);
    return value;
  }

  /// Reads the number of `what`, each of which is at least `least` bytes long.
  Result<std::uint64_t> read_count(std::uint64_t least, std::string_view what) {
    ETSTREAM_ASSIGN(const std::uint64_t count, read<std::uint64_t>());
    if (count <= left() / least) return count;
    return corrupt(at_ - sizeof(count), "expected at most {} {} in the {} bytes that are left, found {}",
                   left() / least, what, left(), count);
  }

  Result<std::string> read_string(std::uint64_t longest, std::string_view what) {
    ETSTREAM_ASSIGN(const std::uint64_t size, read_count(1, "bytes"));
    if (size > longest) {
      return corrupt(at_ - sizeof(size), "expected {} of at most {} bytes, found {}", what, longest, size);
    }
    std::string out(static_cast<std::size_t>(size), '\0');
    ETSTREAM_TRY(reader_.read(at_, std::as_writable_bytes(std::span(out))));
    at_ += size;
    return out;
  }

  Result<void> check_magic_and_version() {
    constexpr std::uint32_t kMagic = 0x46554747;
    const auto magic = read<std::uint32_t>();
    if (!magic && magic.error().code != ErrorCode::kCorrupt) return magic.error();
    if (!magic || *magic != kMagic) {
      return unexpected(ErrorCode::kCorrupt, {reader_.name(), 0}, "\"GGUF\"");
    }
    ETSTREAM_ASSIGN(file_.version, read<std::uint32_t>());
    if (file_.version == 2 || file_.version == 3) return {};
    // llama.cpp recognises big-endian files in the same way.
    if (file_.version != 0 && file_.version % 65536 == 0) {
      return error_at(ErrorCode::kUnsupported, {reader_.name(), 4},
                      "the file is big-endian, expected a little-endian one");
    }
    return unexpected(ErrorCode::kUnsupported, {reader_.name(), 4}, "GGUF version 2 or 3, found {}",
                      file_.version);
  }

  Result<void> pass_metadata() {
    constexpr std::uint64_t kLongestKey = 65535;
    const std::uint64_t start = at_;
    ETSTREAM_ASSIGN(const std::string key, read_string(kLongestKey, "a key"));
    keys_.push_back(key);
    const std::uint64_t type_at = at_;
    ETSTREAM_ASSIGN(const auto type, read<std::uint32_t>());
    const bool is_alignment = key == "general.alignment";
    SplitField* const field = is_alignment ? nullptr : split_field(key);
    if (!is_alignment && field == nullptr) return pass_value(type, type_at, 0);
    if (is_alignment ? std::exchange(seen_alignment_, true) : field->value.has_value()) {
      return corrupt(start, "{} comes twice", key);
    }
    if (field != nullptr) {
      ETSTREAM_ASSIGN(field->value, read_unsigned(type, key, field->may_be_signed));
      field->offset = type_at + 4;
      return {};
    }
    ETSTREAM_ASSIGN(const std::uint64_t value, read_unsigned(type, key));
    file_.alignment = value;
    if (is_power_of_two(value)) return {};
    return corrupt(type_at + 4, "expected a power of two as {}, found {}", key, value);
  }

  /// A field of the metadata about the files that make up the model.
  struct SplitField {
    std::string_view key;
    bool may_be_signed = false;  // as llama.cpp and gguf-py write it
    std::optional<std::uint64_t> value;
    std::uint64_t offset = 0;  // of the value
  };

  SplitField* split_field(std::string_view key) {
    auto* const found = std::ranges::find(split_, key, &SplitField::key);
    return found == split_.end() ? nullptr : found;
  }

  /// Sets file_.split. llama.cpp writes a count of 0 when it makes one file of several.
  Result<void> settle_split() {
    constexpr std::uint64_t kMostFiles = 65535;
    const auto& [number, count, tensors] = split_;
    const std::uint64_t files = count.value.value_or(1);
    if (files > kMostFiles) {
      return corrupt(count.offset, "expected at most {} as {}, found {}", kMostFiles, count.key, files);
    }
    if (files < 2) return {};
    if (!number.value)
      return corrupt(count.offset, "{} is {}: expected {} too", count.key, files, number.key);
    if (*number.value >= files) {
      return corrupt(number.offset, "expected {} below {}, which is {}, found {}", number.key, count.key,
                     files, *number.value);
    }
    file_.split = GgufSplit{static_cast<std::uint32_t>(*number.value), static_cast<std::uint32_t>(files),
                            tensors.value};
    return {};
  }

  /// Reads an integer; with `or_signed`, also one of a signed type that is not negative.
  Result<std::uint64_t> read_unsigned(std::uint32_t type, std::string_view key, bool or_signed = false) {
    const bool is_signed = std::ranges::find(kSignedTypes, type) != kSignedTypes.end();
    if (std::ranges::find(kUnsignedTypes, type) == kUnsignedTypes.end() && !(or_signed && is_signed)) {
      return corrupt(at_ - sizeof(type), "expected {} as an unsigned integer, found type {}", key, type);
    }
    std::uint64_t value = 0;
    const std::uint64_t size = kMetadataSizes[type];
    ETSTREAM_TRY(reader_.read(at_, std::as_writable_bytes(std::span(&value, 1)).first(size)));
    if (is_signed && (value >> (8 * size - 1)) != 0) {
      return corrupt(at_, "expected {} to be 0 or more, found a negative number", key);
    }
    at_ += size;
    return value;
  }

  /// Skips a value of `type`, which was read at `type_at`, inside `depth` arrays.
  Result<void> pass_value(std::uint32_t type, std::uint64_t type_at, int depth) {
    if (type == kMetadataString) {
      ETSTREAM_ASSIGN(const std::uint64_t size, read_count(1, "bytes"));
      at_ += size;
      return {};
    }
    if (type != kMetadataArray) return pass_values(type, type_at, 1);
    if (depth == kDeepestArray) return corrupt(type_at, "arrays are more than {} deep", kDeepestArray);
    const std::uint64_t element_at = at_;
    ETSTREAM_ASSIGN(const auto element, read<std::uint32_t>());
    if (element != kMetadataString && element != kMetadataArray) {
      ETSTREAM_ASSIGN(const auto count, read<std::uint64_t>());
      return pass_values(element, element_at, count);
    }
    ETSTREAM_ASSIGN(const std::uint64_t count,
                    read_count(element == kMetadataArray ? kArrayLeast : kStringLeast, "array elements"));
    for (std::uint64_t i = 0; i < count; ++i) ETSTREAM_TRY(pass_value(element, element_at, depth + 1));
    return {};
  }

  /// Skips `count` values of a type with a fixed size.
  Result<void> pass_values(std::uint32_t type, std::uint64_t type_at, std::uint64_t count) {
    if (type >= kMetadataSizes.size()) {
      return corrupt(type_at, "expected a metadata type up to {}, found {}", kMetadataSizes.size() - 1, type);
    }
    const std::uint64_t size = kMetadataSizes[type];
    if (count > left() / size) {
      return corrupt(at_, "expected {} values of {} bytes inside the {} bytes that are left", count, size,
                     left());
    }
    at_ += count * size;
    return {};
  }

  Result<void> read_tensor() {
    const std::uint64_t start = at_;
    GgufTensor tensor;
    ETSTREAM_ASSIGN(tensor.name, read_string(kLongestName, "a tensor's name"));
    if (!is_utf8(tensor.name)) return corrupt_tensor(start, tensor.name, "expected a name in UTF-8");
    ETSTREAM_ASSIGN(const auto dimensions, read<std::uint32_t>());
    if (dimensions > kMostGgufDimensions) {
      return corrupt_tensor(at_ - 4, tensor.name, "expected at most {} dimensions, found {}",
                            kMostGgufDimensions, dimensions);
    }
    tensor.shape.resize(dimensions);
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      ETSTREAM_ASSIGN(*size, read<std::uint64_t>());
    }
    ETSTREAM_ASSIGN(const auto size, read_type(tensor));
    ETSTREAM_ASSIGN(const auto offset, read<std::uint64_t>());
    if (offset % file_.alignment != 0) {
      return corrupt_tensor(at_ - 8, tensor.name, "expected a data offset that is a multiple of {}, found {}",
                            file_.alignment, offset);
    }
    ranges_.push_back({offset, size, file_.tensors.size()});
    file_.tensors.push_back(std::move(tensor));
    return {};
  }

  /// Reads a tensor's type, and returns the size of its data in bytes; none if the type does not tell it.
  Result<std::optional<std::uint64_t>> read_type(GgufTensor& tensor) {
    const std::uint64_t start = at_;
    ETSTREAM_ASSIGN(const auto number, read<std::uint32_t>());
    const auto* type = std::ranges::find(kGgmlTypes, number, &GgmlType::number);
    if (type == kGgmlTypes.end()) {
      tensor.type = text("GGML_TYPE_{}", number);
      const bool is_empty = std::ranges::find(tensor.shape, 0U) != tensor.shape.end();
      return is_empty ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    tensor.type = type->name;
    tensor.scalar_type = type->scalar_type;
    const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % type->block_elements != 0) {
      return corrupt_tensor(start, tensor.name, "expected rows of a multiple of {} elements for {}, found {}",
                            type->block_elements, type->name, row);
    }
    auto elements = std::optional<std::uint64_t>(1);
    for (const std::uint64_t size : tensor.shape) {
      if (elements) elements = checked_multiply(*elements, size);
    }
    const auto bytes =
        elements ? checked_multiply(*elements / type->block_elements, type->block_bytes) : std::nullopt;
    if (!bytes) return corrupt_tensor(start, tensor.name, "has over 2^64 - 1 elements or bytes");
    return bytes;
  }

  Result<void> check_keys() const {
    const auto repeated = first_repeated(keys_);
    if (!repeated) return {};
    return error_in(ErrorCode::kCorrupt, reader_.name(), "the metadata has key {} twice", quote(*repeated));
  }

  Result<void> check_names() const {
    const auto repeated = first_repeated(file_.tensors, &GgufTensor::name);
    if (!repeated) return {};
    return error_in(ErrorCode::kCorrupt, reader_.name(), "tensor {}: it comes twice", quote(*repeated));
  }

  /// Sets the tensors' data, which is behind all else.
  Result<void> find_data() {
    const std::uint64_t start = at_ + std::min(padding_to(at_, file_.alignment), left());
    ETSTREAM_ASSIGN(const ByteSource data, reader_.source().slice(start, reader_.source().size() - start));
    std::erase_if(ranges_, [](const Range& range) { return range.size == 0; });
    std::ranges::sort(ranges_, {}, &Range::offset);
    std::uint64_t end = 0;
    for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
      GgufTensor& tensor = file_.tensors[range->tensor];
      if (!range->size) {
        const std::uint64_t next = range + 1 == ranges_.end() ? data.size() : (range + 1)->offset;
        range->size = next > range->offset ? next - range->offset : 1;
      }
      if (!range_fits(range->offset, *range->size, data.size())) {
        return corrupt_tensor(start, tensor.name,
                              "expected {} bytes of {} at data offset {}, found {} bytes of data",
                              *range->size, tensor.type, range->offset, data.size());
      }
      if (range->offset < end) {
        return corrupt_tensor(start, tensor.name,
                              "its data at data offset {} overlaps other data, which ends at {}",
                              range->offset, end);
      }
      end = range->offset + *range->size;
      ETSTREAM_ASSIGN(tensor.data, data.slice(range->offset, *range->size));
    }
    return {};
  }

  PagedReader reader_;
  std::uint64_t at_ = 0;
  GgufFile file_;
  bool seen_alignment_ = false;
  std::vector<std::string> keys_;  // of the metadata
  std::array<SplitField, 3> split_ = {
      {{"split.no", false, {}, 0}, {"split.count", false, {}, 0}, {"split.tensors.count", true, {}, 0}}};
  std::vector<Range> ranges_;
};

}  // namespace

Result<GgufFile> open_gguf(const ByteSource& file) {
  return unless_other(file, {"GGUF", {FileKind::kGguf}}, GgufParser(file).parse());
}

std::vector<CheckpointTensor> checkpoint_tensors(GgufFile opened, const ByteSource& file) {
  const auto offset_of = [&](const GgufTensor& tensor) { return tensor.data.offset_in(file).value_or(0); };
  std::ranges::stable_sort(opened.tensors, {}, offset_of);
  std::vector<CheckpointTensor> out;
  out.reserve(opened.tensors.size());
  for (GgufTensor& tensor : opened.tensors) {
    CheckpointTensor& added = out.emplace_back();
    added.name = std::move(tensor.name);
    added.type = std::move(tensor.type);
    added.data = std::move(tensor.data);
    if (tensor.scalar_type) added.layout = contiguous_layout(*tensor.scalar_type, tensor.shape);
    if (!added.layout) added.shape = std::move(tensor.shape);
  }
  return out;
}

}  // namespace etstream
