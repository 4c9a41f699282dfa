// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/flatbuffer_view.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/try.h"

namespace etstream {
namespace {

constexpr std::uint64_t kIdentifierPosition = 4;

bool is_inline(FieldKind kind) {
  return kind == FieldKind::kScalar || kind == FieldKind::kStruct || kind == FieldKind::kUnionType;
}

}  // namespace

Result<ByteSource> without_size_prefix(const ByteSource& prefixed, const std::string& name) {
  constexpr std::uint64_t kPrefix = 4;
  std::vector<std::byte> header(8);  // the offset to the root, and the identifier
  if (prefixed.size() < kPrefix + header.size()) {
    return error_in(ErrorCode::kCorrupt, name, "expected a flatbuffer with its size before it, found {}",
                    counted(prefixed.size(), "byte"));
  }
  ETSTREAM_TRY(prefixed.read_at(kPrefix, header));
  std::uint32_t root = 0;
  std::memcpy(&root, header.data(), sizeof(root));
  if (root > prefixed.size() - kPrefix) {
    return unexpected(ErrorCode::kCorrupt, {name, kPrefix}, "an offset to a table inside the file, found {}",
                      root);
  }
  root += kPrefix;
  std::memcpy(header.data(), &root, sizeof(root));
  const std::size_t size = header.size();
  ETSTREAM_ASSIGN(ByteSource rest, prefixed.slice(size, prefixed.size() - size));
  return ByteSource::concatenation({ByteSource::owned(std::move(header)), std::move(rest)});
}

Result<FlatbufferView> FlatbufferView::open(const Schema& schema, ByteSource file, std::string name,
                                            bool any_identifier) {
  FlatbufferView view(schema, std::move(file), std::move(name));
  const std::string_view expected = any_identifier ? std::string_view() : schema.identifier();
  std::array<char, 4> bytes{};
  const std::uint64_t size = view.file().size();
  if (size < kIdentifierPosition + bytes.size()) {
    return view.corrupt(0, expected.empty() ? "a flatbuffer" : text("a file with identifier {}", expected),
                        counted(size, "byte"));
  }
  ETSTREAM_TRY(view.read(kIdentifierPosition, std::as_writable_bytes(std::span(bytes))));
  const std::string_view found(bytes.data(), bytes.size());
  if (!expected.empty() && found != expected) {
    return view.corrupt(kIdentifierPosition, text("identifier {}", quote(expected)), quote(found));
  }
  ETSTREAM_TRY(view.root());
  return view;
}

Result<TableView> FlatbufferView::root() const {
  ETSTREAM_ASSIGN(const Offset offset, offset_at(0));
  ETSTREAM_ASSIGN(const std::uint64_t position, follow(offset));
  return table(position);
}

Result<TableView> FlatbufferView::table(std::uint64_t position) const {
  TableView out;
  out.position = position;
  const std::uint64_t rest = position < file().size() ? file().size() - position : 0;
  ETSTREAM_TRY(
      read(position,
           std::span(out.content).first(std::clamp<std::uint64_t>(rest, kOffsetSize, out.content.size()))));
  std::int32_t distance = 0;
  std::memcpy(&distance, out.content.data(), sizeof(distance));
  // The vtable lies this many bytes before the table; behind it if the number is negative.
  const std::int64_t vtable = static_cast<std::int64_t>(position) - distance;
  const auto out_of_place = [&](std::string_view expected) {
    return corrupt(position, text("the distance to a vtable {}", expected), std::to_string(distance));
  };
  if (vtable < 0 || vtable % 2 != 0) return out_of_place("that is even and inside the file");
  out.vtable = static_cast<std::uint64_t>(vtable);
  if (!range_fits(out.vtable, sizeof(out.vtable_size), file().size())) return out_of_place("inside the file");
  // The vtable begins with its own size and the table's; the fields' offsets follow.
  std::array<std::uint16_t, 2 + std::tuple_size_v<decltype(out.offsets)>> entries{};
  const std::span entry_bytes = std::as_writable_bytes(std::span(entries));
  const std::uint64_t behind = file().size() - out.vtable;
  ETSTREAM_TRY(read(out.vtable, entry_bytes.first(std::min<std::uint64_t>(behind, entry_bytes.size()))));
  out.vtable_size = entries[0];
  if (out.vtable_size % 2 != 0 || !range_fits(out.vtable, out.vtable_size, file().size())) {
    return corrupt(out.vtable, "an even vtable size, inside the file", std::to_string(out.vtable_size));
  }
  std::copy(entries.begin() + 2, entries.end(), out.offsets.begin());
  return out;
}

Result<std::optional<std::uint64_t>> FlatbufferView::find(const TableView& table,
                                                          const FieldType& field) const {
  const std::uint64_t slot = kVtableHeader + 2 * std::uint64_t{field.id};
  if (slot + 2 > table.vtable_size) return std::optional<std::uint64_t>();
  std::uint64_t offset = 0;
  if (field.id < table.offsets.size()) {
    offset = table.offsets[field.id];
  } else {
    ETSTREAM_ASSIGN(offset, read_bits(table.vtable + slot, 2));
  }
  if (offset == 0) return std::optional<std::uint64_t>();
  const std::uint64_t width = is_inline(field.kind) ? field.width : kOffsetSize;
  const std::uint64_t alignment = is_inline(field.kind) ? field.natural_alignment : kOffsetSize;
  const std::uint64_t position = table.position + offset;
  if (!range_fits(position, width, file().size()) || position % alignment != 0) {
    return corrupt(
        table.vtable + slot,
        text("the offset of {} in the table at {}, aligned and inside the file", field.name, table.position),
        std::to_string(offset));
  }
  return std::optional(position);
}

Result<std::uint64_t> FlatbufferView::extent(const TableView& table, const TableType& declared) const {
  std::uint64_t end = kOffsetSize;
  for (const FieldType& field : declared.fields) {
    ETSTREAM_ASSIGN(const auto position, find(table, field));
    if (!position) continue;
    const std::uint64_t width = is_inline(field.kind) ? field.width : kOffsetSize;
    end = std::max(end, *position + width - table.position);
  }
  return end;
}

Result<std::uint64_t> FlatbufferView::scalar(const TableView& table, const FieldType& field) const {
  ETSTREAM_ASSIGN(const auto position, find(table, field));
  if (!position) return field.default_bits.value_or(0);
  return bits_in(table, *position, field.width);
}

Result<std::optional<TableView>> FlatbufferView::child(const TableView& table, const FieldType& field) const {
  ETSTREAM_ASSIGN(const auto target, target_of(table, field));
  if (!target) return std::optional<TableView>();
  ETSTREAM_ASSIGN(const TableView found, this->table(*target));
  return std::optional(found);
}

Result<std::optional<VectorView>> FlatbufferView::vector(const TableView& table,
                                                         const FieldType& field) const {
  ETSTREAM_ASSIGN(const auto target, target_of(table, field));
  if (!target) return std::optional<VectorView>();
  const std::uint64_t element_size = field.kind == FieldKind::kInlineVector      ? field.width
                                     : field.kind == FieldKind::kUnionTypeVector ? 1
                                                                                 : kOffsetSize;
  ETSTREAM_ASSIGN(const VectorView found, field.kind == FieldKind::kString
                                              ? string_object(*target)
                                              : vector_at(*target, element_size));
  return std::optional(found);
}

Result<std::optional<std::string>> FlatbufferView::string(const TableView& table,
                                                          const FieldType& field) const {
  ETSTREAM_ASSIGN(const auto found, vector(table, field));
  if (!found) return std::optional<std::string>();
  ETSTREAM_ASSIGN(std::string out, characters(*found));
  return std::optional(std::move(out));
}

Result<std::optional<MemberView>> FlatbufferView::member(const TableView& table, const TableType& declared,
                                                         const FieldType& field) const {
  ETSTREAM_ASSIGN(const std::uint64_t type, scalar(table, declared.types_of(field)));
  ETSTREAM_ASSIGN(const auto position, find(table, field));
  if (!position && type == 0) return std::optional<MemberView>();
  if (!position) {
    return corrupt(table.position, text("a value of the union {}.{}", declared.name, field.name), "nothing");
  }
  ETSTREAM_ASSIGN(const Offset offset, offset_at(*position, &table));
  if (type != 0) return member_of(declared, field, type, table.position, offset);
  // Readers pass over a union of type NONE, but FlatBuffers' verifier follows its offset.
  ETSTREAM_TRY(follow(offset, 1, 1));
  return std::optional<MemberView>();
}

Result<std::optional<MemberView>> FlatbufferView::member_of(const TableType& declared, const FieldType& field,
                                                            std::uint64_t type, std::uint64_t type_position,
                                                            const Offset& offset) const {
  const UnionMember* member = schema_->unions()[field.type].member(type);
  if (!member) {
    return corrupt(type_position, text("a known type of the union {}.{}", declared.name, field.name),
                   std::to_string(type));
  }
  const bool is_struct = member->kind == FieldKind::kStruct;
  ETSTREAM_ASSIGN(const std::uint64_t target,
                  is_struct ? follow(offset, member->width, member->natural_alignment) : follow(offset));
  return std::optional(MemberView{member, target});
}

Result<TableView> FlatbufferView::table_at(const VectorView& vector, std::uint64_t i) const {
  ETSTREAM_ASSIGN(const std::uint64_t target, element_at(vector, i));
  return table(target);
}

Result<VectorView> FlatbufferView::string_at(const VectorView& vector, std::uint64_t i) const {
  ETSTREAM_ASSIGN(const std::uint64_t target, element_at(vector, i));
  return string_object(target);
}

Result<std::optional<MemberView>> FlatbufferView::member_at(const TableType& declared, const FieldType& field,
                                                            const VectorView& types, const VectorView& vector,
                                                            std::uint64_t i) const {
  if (types.count != vector.count) {
    return corrupt(types.position, text("a type for each of the {} unions in {}", vector.count, field.name),
                   std::to_string(types.count));
  }
  ETSTREAM_ASSIGN(const std::uint64_t type, read_bits(types.elements() + i, 1));
  if (type == 0) return std::optional<MemberView>();
  ETSTREAM_ASSIGN(const Offset offset, offset_at(vector.elements() + i * kOffsetSize));
  return member_of(declared, field, type, types.elements() + i, offset);
}

Result<ByteSource> FlatbufferView::bytes(const VectorView& vector, const FieldType& field) const {
  return file().slice(vector.elements(), std::uint64_t{vector.count} * field.width);
}

Result<std::string> FlatbufferView::characters(const VectorView& string) const {
  ETSTREAM_TRY(check_small(string, 1));
  std::string out(string.count, '\0');
  ETSTREAM_TRY(read(string.elements(), std::as_writable_bytes(std::span(out))));
  return out;
}

Result<std::uint64_t> FlatbufferView::read_bits(std::uint64_t position, unsigned width) const {
  std::uint64_t bits = 0;
  ETSTREAM_TRY(read(position, std::as_writable_bytes(std::span(&bits, 1)).first(width)));
  return bits;
}

Result<void> FlatbufferView::read(std::uint64_t position, std::span<std::byte> out) const {
  return reader_->read(position, out);
}

Error FlatbufferView::corrupt(std::uint64_t position, std::string_view expected,
                              std::string_view found) const {
  return unexpected(ErrorCode::kCorrupt, {name(), position}, "{}, found {}", expected, found);
}

Result<std::uint64_t> FlatbufferView::bits_in(const TableView& table, std::uint64_t position,
                                              unsigned width) const {
  const std::uint64_t from = position - table.position;
  if (!range_fits(from, width, table.content.size())) return read_bits(position, width);
  std::uint64_t bits = 0;
  std::memcpy(&bits, table.content.data() + from, width);
  return bits;
}

Result<FlatbufferView::Offset> FlatbufferView::offset_at(std::uint64_t position,
                                                         const TableView* table) const {
  ETSTREAM_ASSIGN(const std::uint64_t distance,
                  table ? bits_in(*table, position, kOffsetSize) : read_bits(position, kOffsetSize));
  return Offset{position, distance};
}

Result<std::optional<std::uint64_t>> FlatbufferView::target_of(const TableView& table,
                                                               const FieldType& field) const {
  ETSTREAM_ASSIGN(const auto position, find(table, field));
  if (!position) return std::optional<std::uint64_t>();
  ETSTREAM_ASSIGN(const Offset offset, offset_at(*position, &table));
  ETSTREAM_ASSIGN(const std::uint64_t target, follow(offset));
  return std::optional(target);
}

Result<std::uint64_t> FlatbufferView::element_at(const VectorView& vector, std::uint64_t i) const {
  ETSTREAM_ASSIGN(const Offset offset, offset_at(vector.elements() + i * kOffsetSize));
  // FlatBuffers takes an element that leads to itself.
  return offset.distance == 0 ? Result<std::uint64_t>(offset.position) : follow(offset);
}

Result<std::uint64_t> FlatbufferView::follow(const Offset& offset, std::uint64_t size,
                                             std::uint64_t alignment) const {
  const std::uint64_t target = offset.position + offset.distance;
  if (offset.distance == 0 || target % alignment != 0 || !range_fits(target, size, file().size())) {
    return corrupt(offset.position,
                   text("an offset to a multiple of {} further on inside the file", alignment),
                   std::to_string(offset.distance));
  }
  return target;
}

Result<VectorView> FlatbufferView::vector_at(std::uint64_t position, std::uint64_t element_size) const {
  ETSTREAM_ASSIGN(const std::uint64_t count, read_bits(position, kOffsetSize));
  const VectorView found{position, static_cast<std::uint32_t>(count)};
  if (!range_fits(found.elements(), count * element_size, file().size())) {
    return corrupt(position,
                   text("the length of a vector of elements of {} that is inside the file",
                        counted(element_size, "byte")),
                   std::to_string(count));
  }
  return found;
}

Result<VectorView> FlatbufferView::string_object(std::uint64_t position) const {
  ETSTREAM_ASSIGN(const VectorView found, vector_at(position, 1));
  const std::uint64_t end = found.elements() + found.count;
  ETSTREAM_ASSIGN(const std::uint64_t last, read_bits(end, 1));
  if (last != 0) return corrupt(end, "the zero that ends a string", std::to_string(last));
  return found;
}

Result<void> FlatbufferView::check_small(const VectorView& vector, std::uint64_t element_size) const {
  if (vector.count * element_size <= kLongestString) return {};
  return error_at(ErrorCode::kTooLarge, {name(), vector.position},
                  "a string or list of {} bytes, expected at most {}", vector.count * element_size,
                  kLongestString);
}

}  // namespace etstream
