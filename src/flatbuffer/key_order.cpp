// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/key_order.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/util.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace etstream {
namespace {

using flatbuffers::BaseType;
using flatbuffers::FieldDef;
using flatbuffers::StructDef;

/// An element's key. Integers are in `number`, in their order.
struct Key {
  bool is_there = true;
  std::string_view string = {};
  std::uint64_t number = 0;
  double real = 0;

  /// Compares as flatc does. Strings that are absent come last.
  bool operator<(const Key& other) const {
    if (!is_there || !other.is_there) return is_there;
    return string < other.string || (string == other.string && (number < other.number || real < other.real));
  }
};

template <class Scalar>
Key key_of(const std::uint8_t* at, const FieldDef& field) {
  Scalar value{};
  if (at != nullptr) {
    value = flatbuffers::ReadScalar<Scalar>(at);
  } else {
    flatbuffers::StringToNumber(field.value.constant.c_str(), &value);
  }
  if constexpr (std::is_floating_point_v<Scalar>) return {.real = value};
  constexpr std::uint64_t kSign = std::is_signed_v<Scalar> ? std::uint64_t{1} << 63 : 0;
  return {.number = static_cast<std::uint64_t>(value) ^ kSign};
}

/// Reads the key at `at`, or the default if `at` is null because the file lacks the key.
Key read_key(const std::uint8_t* at, const FieldDef& field) {
  switch (field.value.type.base_type) {
    case flatbuffers::BASE_TYPE_STRING: {
      if (at == nullptr) return {.is_there = false};
      const auto* const string = reinterpret_cast<const flatbuffers::String*>(
          at + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at));
      return {.string = {string->c_str(), string->size()}};
    }
    case flatbuffers::BASE_TYPE_CHAR:
      return key_of<std::int8_t>(at, field);
    case flatbuffers::BASE_TYPE_SHORT:
      return key_of<std::int16_t>(at, field);
    case flatbuffers::BASE_TYPE_USHORT:
      return key_of<std::uint16_t>(at, field);
    case flatbuffers::BASE_TYPE_INT:
      return key_of<std::int32_t>(at, field);
    case flatbuffers::BASE_TYPE_UINT:
      return key_of<std::uint32_t>(at, field);
    case flatbuffers::BASE_TYPE_LONG:
      return key_of<std::int64_t>(at, field);
    case flatbuffers::BASE_TYPE_ULONG:
      return key_of<std::uint64_t>(at, field);
    case flatbuffers::BASE_TYPE_FLOAT:
      return key_of<float>(at, field);
    case flatbuffers::BASE_TYPE_DOUBLE:
      return key_of<double>(at, field);
    default:
      return key_of<std::uint8_t>(at, field);
  }
}

const FieldDef* key_field(const StructDef& type) {
  if (type.has_key) return nullptr;  // of a kind that later parsers know, and sort by
  const auto& fields = type.fields.vec;
  const auto found = std::find_if(fields.begin(), fields.end(), [](const FieldDef* one) { return one->key; });
  return found == fields.end() ? nullptr : *found;
}

/// Returns the order into which flatc sorts elements with these keys.
std::vector<std::uint32_t> order_of(const std::vector<Key>& keys) {
  std::vector<std::uint32_t> out(keys.size());
  std::iota(out.begin(), out.end(), 0);
  std::uint64_t left = 64 * std::uint64_t{keys.size()};
  std::vector<std::pair<std::size_t, std::size_t>> ranges{{0, keys.size()}};
  while (!ranges.empty()) {
    const auto [begin, end] = ranges.back();
    ranges.pop_back();
    if (end - begin < 2) continue;
    if (left < end - begin) {
      std::iota(out.begin(), out.end(), 0);
      std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
      break;
    }
    left -= end - begin;
    std::size_t low = begin + 1;
    std::size_t high = end;
    while (low < high) {
      if (keys[out[begin]] < keys[out[low]]) {
        std::swap(out[low], out[--high]);
      } else {
        ++low;
      }
    }
    std::swap(out[begin], out[low - 1]);
    ranges.emplace_back(begin, low - 1);
    ranges.emplace_back(high, end);
  }
  return out;
}

/// Sorts the vectors of a flatbuffer that the parser has built, and which is therefore sound.
class Sorter {
 public:
  explicit Sorter(const flatbuffers::Parser& parser) {
    for (const StructDef* type : parser.structs_.vec) keys_.emplace(type, key_field(*type));
  }

  [[nodiscard]] bool has_keys() const {
    return std::any_of(keys_.begin(), keys_.end(), [](const auto& type) { return type.second != nullptr; });
  }

  void sort_table(std::uint8_t* table, const StructDef& type) const {
    const std::uint8_t* const vtable = table - flatbuffers::ReadScalar<flatbuffers::soffset_t>(table);
    const auto vtable_size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable);
    for (std::size_t i = 0; i < type.fields.vec.size(); ++i) {
      const FieldDef& field = *type.fields.vec[i];
      if (field.value.offset >= vtable_size) return;
      const auto at = flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + field.value.offset);
      if (at == 0) continue;
      const flatbuffers::Type& held = field.value.type;
      const auto type_before = [&] { return table_field(table, vtable, *type.fields.vec[i - 1]); };
      if (held.base_type == flatbuffers::BASE_TYPE_VECTOR) {
        std::uint8_t* const vector = target(table + at);
        const bool is_union = held.element == flatbuffers::BASE_TYPE_UNION;
        sort_vector(vector, field, is_union ? target(type_before()) + kLength : nullptr);
      } else {
        sort_object(table + at, held, held.base_type == flatbuffers::BASE_TYPE_UNION ? *type_before() : 0);
      }
    }
  }

 private:
  static constexpr std::size_t kLength = sizeof(flatbuffers::uoffset_t);

  static std::uint8_t* target(std::uint8_t* offset) {
    return offset + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(offset);
  }
  static std::uint8_t* table_field(std::uint8_t* table, const std::uint8_t* vtable, const FieldDef& field) {
    return table + flatbuffers::ReadScalar<flatbuffers::voffset_t>(vtable + field.value.offset);
  }

  /// Sorts what is at `offset`: a table, or the member of kind `member` of a union. Other members have
  /// nothing to sort.
  void sort_object(std::uint8_t* offset, const flatbuffers::Type& type, std::uint8_t member) const {
    const flatbuffers::Type* held = &type;
    if (type.base_type == flatbuffers::BASE_TYPE_UNION) {
      const flatbuffers::EnumVal* const value = type.enum_def->ReverseLookup(member);
      if (value == nullptr) return;
      held = &value->union_type;
    }
    if (held->base_type == flatbuffers::BASE_TYPE_STRUCT && !held->struct_def->fixed) {
      sort_table(target(offset), *held->struct_def);
    }
  }

  /// `members` are the types of a vector of unions.
  void sort_vector(std::uint8_t* vector, const FieldDef& field, const std::uint8_t* members) const {
    const auto count = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(vector);
    std::uint8_t* const elements = vector + kLength;
    const flatbuffers::Type held = field.value.type.VectorType();
    const bool is_union = held.base_type == flatbuffers::BASE_TYPE_UNION;
    if (held.base_type != flatbuffers::BASE_TYPE_STRUCT && !is_union) return;
    if (is_union || !held.struct_def->fixed) {
      for (std::size_t i = 0; i < count; ++i) {
        sort_object(elements + i * kLength, held, is_union ? members[i] : std::uint8_t{0});
      }
    }
    const FieldDef* const key = is_union ? nullptr : keys_.at(held.struct_def);
    if (key == nullptr) return;
    if (held.struct_def->fixed) {
      sort_structs(elements, count, held.struct_def->bytesize, *key);
    } else {
      sort_tables(elements, count, *key);
    }
  }

  static void sort_structs(std::uint8_t* elements, std::size_t count, std::size_t size, const FieldDef& key) {
    std::vector<Key> keys;
    for (std::size_t i = 0; i < count; ++i) {
      keys.push_back(read_key(elements + i * size + key.value.offset, key));
    }
    const std::vector<std::uint8_t> before(elements, elements + count * size);
    for (const std::uint32_t i : order_of(keys)) {
      std::memcpy(elements, before.data() + i * size, size);
      elements += size;
    }
  }

  static void sort_tables(std::uint8_t* elements, std::size_t count, const FieldDef& key) {
    std::vector<Key> keys;
    std::vector<std::uint8_t*> tables;
    for (std::size_t i = 0; i < count; ++i) {
      tables.push_back(target(elements + i * kLength));
      const auto* const table = reinterpret_cast<const flatbuffers::Table*>(tables.back());
      keys.push_back(read_key(table->GetAddressOf(key.value.offset), key));
    }
    for (const std::uint32_t i : order_of(keys)) {
      flatbuffers::WriteScalar(elements, static_cast<flatbuffers::uoffset_t>(tables[i] - elements));
      elements += kLength;
    }
  }

  std::map<const StructDef*, const FieldDef*> keys_;
};

}  // namespace

bool leave_unsorted(flatbuffers::Parser& parser) {
  bool sorted = false;
  for (StructDef* type : parser.structs_.vec) {
    const bool has_key = std::exchange(type->has_key, false);
    const FieldDef* const key = key_field(*type);
    const BaseType kind = key ? key->value.type.base_type : flatbuffers::BASE_TYPE_NONE;
    const bool is_known = flatbuffers::IsScalar(kind) || kind == flatbuffers::BASE_TYPE_STRING;
    type->has_key = has_key && !is_known;
    sorted |= has_key && is_known;
  }
  return sorted;
}

void sort_by_keys(const flatbuffers::Parser& parser, std::span<std::byte> flatbuffer) {
  const Sorter sorter(parser);
  if (!sorter.has_keys()) return;
  auto* const begin = reinterpret_cast<std::uint8_t*>(flatbuffer.data());
  const auto root = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(begin);
  sorter.sort_table(begin + root, *parser.root_struct_def_);
}

}  // namespace etstream
