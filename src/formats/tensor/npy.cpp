// SPDX-License-Identifier: BSD-3-Clause
#include "formats/tensor/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/tensor.h"

namespace etstream {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::uint32_t kLongestNpyHeader = 64 << 10;

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Parses a header: a Python dict literal with exactly the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  /// Returns nothing if the text is not such a dict.
  std::optional<NpyHeader> parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::uint64_t>> shape;
    if (!accept("{")) return std::nullopt;
    while (!accept("}")) {
      const auto key = string();
      if (!key || !accept(":")) return std::nullopt;
      const bool has_value = *key == "descr"           ? (descr = string()).has_value()
                             : *key == "fortran_order" ? (fortran_order = boolean()).has_value()
                                                       : *key == "shape" && (shape = tuple()).has_value();
      if (!has_value || !(accept(",") || next_is("}"))) return std::nullopt;
    }
    skip_space();
    if (!rest_.empty() || !descr || !fortran_order || !shape) return std::nullopt;
    return NpyHeader{std::move(*descr), *fortran_order, std::move(*shape)};
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool next_is(std::string_view word) {
    skip_space();
    return rest_.starts_with(word);
  }
  bool accept(std::string_view word) {
    if (!next_is(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string> string() {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return out;
  }
  std::optional<bool> boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    return std::nullopt;
  }
  std::optional<std::vector<std::uint64_t>> tuple() {
    std::vector<std::uint64_t> out;
    if (!accept("(")) return std::nullopt;
    while (!accept(")")) {
      skip_space();
      std::uint64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc()) return std::nullopt;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      out.push_back(size);
      if (!accept(",") && !next_is(")")) return std::nullopt;
    }
    return out;
  }

  std::string_view rest_;
};

struct NpyType {
  std::string_view descr;
  ScalarType type;
};

constexpr std::array kNpyTypes = {
    NpyType{"|b1", ScalarType::kBool},      NpyType{"|u1", ScalarType::kUInt8},
    NpyType{"|i1", ScalarType::kInt8},      NpyType{"<u2", ScalarType::kUInt16},
    NpyType{"<i2", ScalarType::kInt16},     NpyType{"<u4", ScalarType::kUInt32},
    NpyType{"<i4", ScalarType::kInt32},     NpyType{"<u8", ScalarType::kUInt64},
    NpyType{"<i8", ScalarType::kInt64},     NpyType{"<f2", ScalarType::kFloat16},
    NpyType{"<f4", ScalarType::kFloat32},   NpyType{"<f8", ScalarType::kFloat64},
    NpyType{"<c8", ScalarType::kComplex64}, NpyType{"<c16", ScalarType::kComplex128},
};

Result<ScalarType> type_of(const std::string& descr, const std::string& file) {
  for (const NpyType& known : kNpyTypes) {
    // A single byte has no byte order, though some writers give one.
    const bool is_byte = known.descr[0] == '|' && descr.size() == known.descr.size();
    if (descr == known.descr || (is_byte && descr.substr(1) == known.descr.substr(1))) return known.type;
  }
  const bool is_big_endian = descr.starts_with('>');
  return with_advice(error_in(ErrorCode::kUnsupported, file, "elements of type {} are {}", quote(descr),
                              is_big_endian ? "big-endian" : "none that a tensor has"),
                     {is_big_endian ? "save the array as little-endian"
                                    : "give the data as raw with a dtype, or as safetensors"});
}

struct Prefix {
  std::uint64_t data_offset = 0;
  std::string header;
};

Result<Prefix> read_prefix(const ByteSource& file) {
  const auto corrupt = [&](std::uint64_t offset, std::string_view expected) {
    return error_in(ErrorCode::kCorrupt, file.name(), "not a .npy file: expected {} at offset {}", expected,
                    offset);
  };
  std::array<char, 8> start{};  // the magic, then the version's major and minor number
  if (file.size() < start.size()) return corrupt(0, "at least 8 bytes");
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(start))));
  if (std::string_view(start.data(), kNpyMagic.size()) != kNpyMagic)
    return corrupt(0, "the magic \\x93NUMPY");
  const int major = static_cast<unsigned char>(start[6]);
  if (major < 1 || major > 3) return corrupt(6, "a version from 1 to 3");
  const std::uint64_t length_size = major == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (file.size() < start.size() + length_size) return corrupt(8, "the header's length");
  ETSTREAM_TRY(file.read_at(start.size(), std::as_writable_bytes(std::span(&length, 1)).first(length_size)));
  Prefix prefix;
  prefix.data_offset = start.size() + length_size + length;
  if (length > kLongestNpyHeader || prefix.data_offset > file.size()) {
    return corrupt(
        8, text("a header of at most {} bytes that is inside the file, not {}", kLongestNpyHeader, length));
  }
  prefix.header.resize(length);
  ETSTREAM_TRY(file.read_at(start.size() + length_size, std::as_writable_bytes(std::span(prefix.header))));
  return prefix;
}

Result<std::vector<std::int32_t>> sizes_of(const std::vector<std::uint64_t>& shape, const std::string& file) {
  std::vector<std::int32_t> sizes;
  for (const std::uint64_t size : shape) {
    if (!std::in_range<std::int32_t>(size)) {
      return error_in(ErrorCode::kTooLarge, file,
                      "a dimension has size {}, a tensor's are at most 2147483647", size);
    }
    sizes.push_back(static_cast<std::int32_t>(size));
  }
  return sizes;
}

}  // namespace

Result<Tensor> open_npy(const ByteSource& file) {
  ETSTREAM_ASSIGN(const Prefix prefix, read_prefix(file));
  auto header = HeaderParser(prefix.header).parse();
  if (!header && prefix.header.find("'descr': [") != std::string::npos) {
    return error_in(ErrorCode::kUnsupported, file.name(), "a structured array is no tensor");
  }
  if (!header) {
    return error_in(ErrorCode::kCorrupt, file.name(), "not a .npy file of one plain array: header {}",
                    quote(prefix.header));
  }
  Tensor tensor;
  ETSTREAM_ASSIGN(tensor.scalar_type, type_of(header->descr, file.name()));
  ETSTREAM_ASSIGN(tensor.sizes, sizes_of(header->shape, file.name()));
  const auto expected = byte_size(tensor.scalar_type, tensor.sizes);
  if (!expected) return error_in(expected.error().code, file.name(), "{}", expected.error().message);
  const std::uint64_t found = file.size() - prefix.data_offset;
  if (found != *expected) {
    return error_in(ErrorCode::kCorrupt, file.name(),
                    "expected {} bytes of data from its shape, found {} at offset {}", *expected, found,
                    prefix.data_offset);
  }
  ETSTREAM_ASSIGN(tensor.data, file.slice(prefix.data_offset, *expected));
  const std::size_t dimensions = tensor.sizes.size();
  if (dimensions > kMostDimensions) {
    return error_in(ErrorCode::kInvalidArgument, file.name(),
                    "the array has {} dimensions, ExecuTorch's tensors have at most {}", dimensions,
                    kMostDimensions);
  }
  tensor.dim_order = contiguous_dim_order(dimensions);
  if (!header->fortran_order) return tensor;
  std::reverse(tensor.dim_order.begin(), tensor.dim_order.end());
  return with_dim_order(tensor, contiguous_dim_order(dimensions));
}

std::optional<std::string> npy_header(const Tensor& tensor) {
  const auto* known = std::find_if(kNpyTypes.begin(), kNpyTypes.end(),
                                   [&](const NpyType& type) { return type.type == tensor.scalar_type; });
  if (known == kNpyTypes.end() || tensor.dim_order != contiguous_dim_order(tensor.sizes.size())) {
    return std::nullopt;
  }
  std::string dict = text("{{'descr': '{}', 'fortran_order': False, 'shape': (", known->descr);
  for (const std::int32_t size : tensor.sizes) {
    dict += (dict.ends_with('(') ? "" : ", ") + std::to_string(size);
  }
  dict += tensor.sizes.size() == 1 ? ",), }" : "), }";
  // NumPy writes version 1.0, with room for the first dimension to grow to 21 digits, and data that begins at
  // a multiple of 64.
  constexpr std::size_t kPrefix = 10;
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kDigits = 21;
  if (!tensor.sizes.empty()) dict.append(kDigits - std::to_string(tensor.sizes[0]).size(), ' ');
  dict.append((kAlignment - (kPrefix + dict.size() + 1) % kAlignment) % kAlignment, ' ');
  dict += '\n';
  const auto length = static_cast<std::uint16_t>(dict.size());
  std::string header(kNpyMagic);
  header += {'\1', '\0', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return header + dict;
}

}  // namespace etstream
