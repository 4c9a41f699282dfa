// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/json/json_writer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/base64.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/flatbuffer_walk.h"
#include "flatbuffer/json/json_text.h"

namespace etstream {
namespace {

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

Result<void> write_json(const FlatbufferView& view, const JsonOptions& options, Sink& sink) {
  return without_exceptions([&] { return JsonFlatbufferWriter(view, options, sink).run(); });
}

}  // namespace etstream
