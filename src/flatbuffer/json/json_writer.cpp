// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/flatbuffer_view.h"

namespace etstream {
namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoBase64Digit = 64;

constexpr std::array<std::uint8_t, 256> base64_values() {
  std::array<std::uint8_t, 256> out{};
  out.fill(kNoBase64Digit);
  for (std::size_t i = 0; i < kBase64Digits.size(); ++i) {
    out[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<std::uint8_t>(i);
  }
  return out;
}
constexpr auto kBase64Values = base64_values();

constexpr std::string_view kOtherNan = "nan:";

std::string with_point(std::string_view digits) {
  return text("{}{}", digits, digits.find_first_of(".e") == std::string_view::npos ? ".0" : "");
}

/// Spells a float so that it stays the same when a reader of JSON reads it as a double first.
std::string float_text(float value) {
  std::array<char, 32> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double read = 0;
  std::from_chars(digits.data(), end, read);
  return static_cast<float>(read) == value ? with_point({digits.data(), end}) : json_number(value);
}

double value_of(std::uint64_t bits, unsigned width) {
  if (width == sizeof(float)) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

std::uint64_t bits_of(double value, unsigned width) {
  if (width == sizeof(float)) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

using TapeKind = JsonTape::Kind;

std::uint64_t highest(const InlineType& type) { return type.mask() >> (type.is_signed ? 1 : 0); }

std::int64_t as_signed(std::uint64_t bits, const InlineType& type) {
  const unsigned unused = 64 - 8 * type.width;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::optional<std::uint64_t> integer_bits(const InlineType& type, const JsonTape::Value& value) {
  if (value.kind == TapeKind::kUnsigned)
    return value.large <= highest(type) ? std::optional(value.large) : std::nullopt;
  if (value.kind != TapeKind::kInteger) return std::nullopt;
  const auto bits = static_cast<std::uint64_t>(value.integer);
  if (value.integer >= 0) return bits <= highest(type) ? std::optional(bits) : std::nullopt;
  if (!type.is_signed || ~bits > highest(type)) return std::nullopt;
  return bits & type.mask();
}

template <class Float, class Bits>
std::optional<std::uint64_t> float_bits(const JsonTape::Value& value) {
  Float out = 0;
  if (value.kind == TapeKind::kDouble) {
    out = static_cast<Float>(value.number);
  } else if (value.kind == TapeKind::kInteger) {
    out = static_cast<Float>(value.integer);
  } else if (value.kind == TapeKind::kUnsigned) {
    out = static_cast<Float>(value.large);
  } else {
    return std::nullopt;
  }
  if (std::isinf(out)) return std::nullopt;
  return std::bit_cast<Bits>(out);
}

std::optional<std::uint64_t> enum_bits(const EnumType& type, std::string_view names) {
  std::uint64_t bits = 0;
  while (true) {
    const std::size_t space = type.is_flags ? names.find(' ') : std::string_view::npos;
    const EnumValue* value = type.find(names.substr(0, space));
    if (!value) return std::nullopt;
    bits |= value->bits;
    if (space == std::string_view::npos) return bits;
    names.remove_prefix(space + 1);
  }
}

/// Returns the names of the bits that are set; nothing if one of them has no name.
std::optional<std::string> flag_names(const EnumType& type, std::uint64_t bits) {
  std::string out;
  for (const EnumValue& value : type.values) {
    if (value.bits == 0 || (bits & value.bits) != value.bits) continue;
    out += (out.empty() ? "" : " ") + value.name;
    bits &= ~value.bits;
  }
  if (bits != 0 || out.empty()) return std::nullopt;
  return out;
}

constexpr std::uint64_t kChunkSize = std::uint64_t{48} << 10;  // read at a time; a multiple of 3, for base64
constexpr std::size_t kPassedOn = std::size_t{64} << 10;       // to the sink at a time
constexpr std::uint64_t kLongestBase64 = std::uint64_t{3} << 20;  // in one string

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

/// Lays values out, and appends them to a sink in pieces of some 64 KiB. Memory: one piece, and the longest
/// value.
class JsonText {
 public:
  /// With `compact`, there is no white space; otherwise each level is indented by 2 spaces. `sink` outlives
  /// the text.
  JsonText(Sink& sink, bool compact) : sink_(sink), compact_(compact) {}

  /// Begins an object with '{' or an array with '['. Its elements stand on one line, or each on a line of its
  /// own.
  void begin(char bracket, bool on_one_line = false) {
    separate();
    buffer_ += bracket;
    levels_.push_back({on_one_line || (!levels_.empty() && levels_.back().on_one_line), true});
  }
  void end(char bracket) {
    const Level level = levels_.back();
    levels_.pop_back();
    if (!level.is_empty && !level.on_one_line) new_line();
    buffer_ += bracket;
  }
  /// `name` needs no escapes.
  void key(std::string_view name) {
    separate();
    buffer_ += '"';
    buffer_ += name;
    buffer_ += compact_ ? "\":" : "\": ";
    after_key_ = true;
  }
  /// Appends a value, which is spelled as JSON.
  void value(std::string_view spelled) {
    separate();
    buffer_ += spelled;
  }
  void key_and_value(std::string_view name, std::string_view spelled) {
    key(name);
    value(spelled);
  }
  /// Returns the text so far, to append to a value.
  [[nodiscard]] std::string& buffer() noexcept { return buffer_; }

  /// Passes on what is complete. To be called between values. Error: the sink's.
  Result<void> pass_on() { return buffer_.size() < kPassedOn ? Result<void>() : flush(); }
  /// Ends the text.
  Result<void> finish() {
    buffer_ += '\n';
    return flush();
  }

 private:
  struct Level {
    bool on_one_line = false;
    bool is_empty = true;
  };

  /// Writes what stands between a value or key and what is before it.
  void separate() {
    if (!after_key_ && !levels_.empty()) {
      Level& level = levels_.back();
      if (!level.is_empty) buffer_ += compact_ || !level.on_one_line ? "," : ", ";
      level.is_empty = false;
      if (!level.on_one_line) new_line();
    }
    after_key_ = false;
  }
  void new_line() {
    if (compact_) return;
    buffer_ += '\n';
    buffer_.append(2 * levels_.size(), ' ');
  }
  Result<void> flush() {
    ETSTREAM_TRY(sink_.append(ByteSource::memory(std::as_bytes(std::span(buffer_)))));
    buffer_.clear();
    return {};
  }

  Sink& sink_;
  const bool compact_;
  std::vector<Level> levels_;  // that are open
  bool after_key_ = false;
  std::string buffer_;
};

class JsonFlatbufferWriter : public FlatbufferVisitor {
 public:
  JsonFlatbufferWriter(const FlatbufferView& view, const JsonOptions& options, Sink& sink)
      : view_(view),
        schema_(view.schema()),
        options_(options),
        out_(sink, options.compact),
        budget_(view.name(), view.file().size()) {}

  Result<void> run() {
    if (options_.references) {
      file_ = json_string(options_.references->file);
      if (!file_) {
        return make_error(ErrorCode::kInvalidArgument, "file name {} is not UTF-8, as JSON needs it",
                          quote(options_.references->file));
      }
    }
    ETSTREAM_TRY(walk_flatbuffer(view_, *this));
    return out_.finish();
  }

  /// Skips the types of unions, which come with their unions.
  static bool wants(const FieldType& field) { return !is_type_of_unions(field); }
  Result<void> begin_table(const TableView& table, const TableType& declared) {
    ETSTREAM_ASSIGN(const std::uint64_t extent, view_.extent(table, declared));
    ETSTREAM_TRY(reach(table.position, extent));
    out_.begin('{');
    return {};
  }
  Result<void> end_table() {
    out_.end('}');
    return out_.pass_on();
  }
  Result<void> absent(const TableView& /*table*/, const TableType& /*declared*/, const FieldType& field) {
    if (options_.defaults && field.kind == FieldKind::kScalar && !field.deprecated) write_default(field);
    return {};
  }
  void begin_field(const TableType& declared, const FieldType& field, const UnionMember* member) {
    if (field.kind == FieldKind::kUnionVector) return;  // whose types are first
    if (member) out_.key_and_value(declared.types_of(field).name, name_of(member));
    out_.key(field.name);
  }
  Result<void> reach(std::uint64_t position, std::uint64_t size) { return budget_.reach(position, size); }
  Result<void> inline_value(std::uint64_t position, const InlineType& type) {
    chunk_.resize(type.width);
    ETSTREAM_TRY(view_.read(position, chunk_));
    write_element(chunk_, type);
    return out_.pass_on();
  }
  Result<void> begin_vector(const TableType& declared, const FieldType& field, const VectorView& types,
                            const VectorView& vector) {
    if (field.kind == FieldKind::kUnionVector) {
      out_.key(declared.types_of(field).name);
      out_.begin('[', true);
      for (std::uint64_t i = 0; i < vector.count; ++i) {
        ETSTREAM_ASSIGN(const auto member, view_.member_at(declared, field, types, vector, i));
        out_.value(name_of(member ? member->type : nullptr));
        ETSTREAM_TRY(out_.pass_on());
      }
      out_.end(']');
      out_.key(field.name);
    }
    out_.begin('[');
    return {};
  }
  Result<void> no_member() {
    out_.value("null");
    return out_.pass_on();
  }
  void end_vector() { out_.end(']'); }
  Result<void> string(const VectorView& string) {
    ETSTREAM_ASSIGN(const std::string characters, view_.characters(string));
    if (const auto quoted = json_string(characters)) {
      out_.value(*quoted);
      return out_.pass_on();
    }
    out_.begin('{', true);
    out_.key("base64");
    write_base64(std::as_bytes(std::span(characters)));
    out_.end('}');
    return out_.pass_on();
  }

  Result<void> inline_vector(const VectorView& vector, const FieldType& field) {
    ETSTREAM_ASSIGN(const ByteSource elements, view_.bytes(vector, field));
    if (options_.references && elements.size() > options_.references->over) {
      out_.begin('{', true);
      out_.key_and_value("file", *file_);
      out_.key_and_value("offset", std::to_string(options_.references->offset + vector.elements()));
      out_.key_and_value("size", std::to_string(elements.size()));
      out_.end('}');
      return {};
    }
    ETSTREAM_TRY(budget_.reach(vector.position, elements.size()));
    if (is_byte(field)) return write_bytes(elements);
    out_.begin('[', true);
    const std::uint64_t at_once = std::max<std::uint64_t>(kChunkSize / field.width, 1) * field.width;
    ETSTREAM_TRY(read_chunks(elements, 0, elements.size(), at_once, [&](std::span<const std::byte> chunk) {
      for (; !chunk.empty(); chunk = chunk.subspan(field.width))
        write_element(chunk.first(field.width), field);
    }));
    out_.end(']');
    return {};
  }

 private:
  void write_default(const FieldType& field) {
    if (!field.default_bits) return;
    const std::string spelled = json_scalar(schema_, field, *field.default_bits & field.mask());
    // A NaN equals no default, so the packer would store it.
    if (field.is_float && spelled.starts_with("\"nan")) return;
    out_.key_and_value(field.name, spelled);
  }

  static std::string name_of(const UnionMember* type) { return text("\"{}\"", type ? type->name : "NONE"); }

  void write_base64(std::span<const std::byte> bytes) {
    out_.value("\"");
    append_base64(bytes, out_.buffer());
    out_.buffer() += '"';
  }

  /// Gives the bytes of a range, `at_once` at a time.
  template <class Take>
  Result<void> read_chunks(const ByteSource& from, std::uint64_t offset, std::uint64_t size,
                           std::uint64_t at_once, const Take& take) {
    for (std::uint64_t done = 0; done < size; done += at_once) {
      chunk_.resize(static_cast<std::size_t>(std::min(at_once, size - done)));
      ETSTREAM_TRY(from.read_at(offset + done, chunk_));
      take(std::span<const std::byte>(chunk_));
      ETSTREAM_TRY(out_.pass_on());
    }
    return {};
  }

  Result<void> write_bytes(const ByteSource& bytes) {
    const bool in_pieces = bytes.size() > kLongestBase64;
    if (in_pieces) out_.begin('[');
    std::uint64_t offset = 0;
    do {
      const std::uint64_t size = std::min(kLongestBase64, bytes.size() - offset);
      out_.value("\"");
      ETSTREAM_TRY(read_chunks(bytes, offset, size, kChunkSize, [&](std::span<const std::byte> chunk) {
        append_base64(chunk, out_.buffer());
      }));
      out_.buffer() += '"';
      offset += size;
    } while (offset < bytes.size());
    if (in_pieces) out_.end(']');
    return {};
  }

  void write_element(std::span<const std::byte> bytes, const InlineType& type) {
    if (!type.structure) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes.data(), bytes.size());
      out_.value(json_scalar(schema_, type, bits));
    } else if (has_padding(bytes, schema_.structs()[*type.structure])) {
      write_base64(bytes);
    } else {
      write_struct(bytes, schema_.structs()[*type.structure]);
    }
  }

  /// Returns whether a byte between or behind the members is not zero.
  bool has_padding(std::span<const std::byte> bytes, const StructType& type) const {
    std::size_t end = 0;
    for (const StructMember& member : type.members) {
      if (!is_zero(bytes.subspan(end, member.offset - end))) return true;
      end = member.offset;
      for (std::uint32_t i = 0; i < member.count.value_or(1); ++i, end += member.width) {
        if (member.structure &&
            has_padding(bytes.subspan(end, member.width), schema_.structs()[*member.structure])) {
          return true;
        }
      }
    }
    return !is_zero(bytes.subspan(end));
  }

  void write_struct(std::span<const std::byte> bytes, const StructType& type) {
    out_.begin('{', true);
    for (const StructMember& member : type.members) {
      out_.key(member.name);
      if (member.count) out_.begin('[', true);
      for (std::uint32_t i = 0; i < member.count.value_or(1); ++i) {
        write_element(bytes.subspan(member.offset + std::size_t{i} * member.width, member.width), member);
      }
      if (member.count) out_.end(']');
    }
    out_.end('}');
  }

  const FlatbufferView& view_;
  const Schema& schema_;
  const JsonOptions& options_;
  JsonText out_;
  FileBudget budget_;
  std::optional<std::string> file_;  // of the references, as JSON
  std::vector<std::byte> chunk_;     // that was read last
};

}  // namespace

void append_base64(std::span<const std::byte> bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < taken ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k) out += k <= taken ? kBase64Digits[group >> (18 - 6 * k) & 63] : '=';
  }
}

bool decode_base64(std::string_view text, std::vector<std::byte>& out) {
  if (text.size() % 4 != 0) return false;
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    const std::size_t padding = !is_last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    std::uint32_t group = 0;
    bool is_good = true;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint8_t digit = k < 4 - padding ? kBase64Values[static_cast<unsigned char>(text[i + k])] : 0;
      is_good = is_good && digit != kNoBase64Digit;
      group = group << 6 | (digit & 63U);
    }
    // The bits that the padding leaves unused must be zero.
    if (!is_good || (group & ((1U << (8 * padding)) - 1)) != 0) {
      out.resize(before);
      return false;
    }
    for (std::size_t k = 0; k < 3 - padding; ++k) {
      out.push_back(static_cast<std::byte>(group >> (16 - 8 * k) & 255));
    }
  }
  return true;
}

std::optional<std::string> json_string(std::string_view string) {
  std::string out = "\"";
  while (!string.empty()) {
    const auto [size, code] = character_at(string);
    if (size == 0) return std::nullopt;
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (is_control(code)) {
      out += text("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      out += string.substr(0, size);
    }
    string.remove_prefix(size);
  }
  out += '"';
  return out;
}

std::string json_number(double value) { return with_point(exact_text(value)); }

std::string json_float(std::uint64_t bits, unsigned width) {
  const double value = value_of(bits, width);
  if (std::isfinite(value)) {
    return width == sizeof(float) ? float_text(static_cast<float>(value)) : json_number(value);
  }
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (bits == bits_of(std::numeric_limits<double>::quiet_NaN(), width)) return "\"nan\"";
  return text("\"{}{:x}\"", kOtherNan, bits);
}

std::optional<std::uint64_t> parse_special_float(std::string_view string, unsigned width) {
  using Limits = std::numeric_limits<double>;
  const bool is_negative = string.starts_with('-');
  const std::string_view word = string.substr(is_negative ? 1 : 0);
  const bool is_nan = word == "nan" || word == "NaN";
  if (is_nan || word == "inf" || word == "Infinity") {
    const double value = is_nan ? Limits::quiet_NaN() : Limits::infinity();
    return bits_of(is_negative ? -value : value, width);
  }
  if (!string.starts_with(kOtherNan)) return std::nullopt;
  string.remove_prefix(kOtherNan.size());
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(string.data(), string.data() + string.size(), bits, 16);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == string.data() + string.size();
  if (!is_whole || bits >> (8 * width - 1) > 1 || !std::isnan(value_of(bits, width))) return std::nullopt;
  return bits;
}

std::optional<std::uint64_t> scalar_bits(const Schema& schema, const InlineType& type,
                                         const JsonTape::Value& value) {
  if (type.is_float) {
    if (value.kind == TapeKind::kString) return parse_special_float(value.string, type.width);
    return type.width == sizeof(float) ? float_bits<float, std::uint32_t>(value)
                                       : float_bits<double, std::uint64_t>(value);
  }
  if (type.is_bool && value.kind == TapeKind::kBool) return value.boolean ? 1 : 0;
  if (type.enumeration && value.kind == TapeKind::kString) {
    return enum_bits(schema.enums()[*type.enumeration], value.string);
  }
  return integer_bits(type, value);
}

std::string expected_scalar(const Schema& schema, const InlineType& type) {
  if (type.is_float) return text("a number in the range of {} bytes, 'nan', 'inf' or '-inf'", type.width);
  if (type.is_bool) return "true or false";
  const std::uint64_t most = highest(type);
  const std::string range = text(
      " from {} to {}", type.is_signed ? std::to_string(-1 - static_cast<std::int64_t>(most)) : "0", most);
  if (!type.enumeration) return text("an integer{}", range);
  return text("a name in enum {}, or an integer{}", schema.enums()[*type.enumeration].name, range);
}

std::string shown(const JsonTape::Value& value) {
  switch (value.kind) {
    case TapeKind::kNull:
      return "null";
    case TapeKind::kBool:
      return value.boolean ? "true" : "false";
    case TapeKind::kInteger:
      return std::to_string(value.integer);
    case TapeKind::kUnsigned:
      return std::to_string(value.large);
    case TapeKind::kDouble:
      return json_number(value.number);
    case TapeKind::kString:
      return quote(value.string);
    default:
      return std::string(name_of(value.kind));
  }
}

std::string json_scalar(const Schema& schema, const InlineType& type, std::uint64_t bits) {
  if (type.is_float) return json_float(bits, type.width);
  if (type.is_bool && bits <= 1) return bits == 1 ? "true" : "false";
  if (type.enumeration) {
    const EnumType& declared = schema.enums()[*type.enumeration];
    if (const EnumValue* value = declared.find(bits)) return text("\"{}\"", value->name);
    if (const auto names = flag_names(declared, bits); declared.is_flags && names) {
      return text("\"{}\"", *names);
    }
  }
  return type.is_signed ? std::to_string(as_signed(bits, type)) : std::to_string(bits);
}

Result<void> write_json(const FlatbufferView& view, const JsonOptions& options, Sink& sink) {
  return without_exceptions([&] { return JsonFlatbufferWriter(view, options, sink).run(); });
}

}  // namespace etstream
