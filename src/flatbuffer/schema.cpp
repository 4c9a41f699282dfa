// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema.h"

#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>
#include <flatbuffers/reflection_generated.h>
#include <flatbuffers/util.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/checked.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"

namespace etstream {
namespace {

constexpr std::uint64_t kLargestAlignment = std::uint64_t{1} << 16;
constexpr std::int32_t kLargestStruct = 65535;  // as a table, which holds it

/// Returns the type that the file has, or MaxBaseType for a number that is no type. FlatBuffers' accessors
/// would make an enumerator of any number.
reflection::BaseType base_of(const reflection::Type& type,
                             flatbuffers::voffset_t field = reflection::Type::VT_BASE_TYPE) {
  const auto number = reinterpret_cast<const flatbuffers::Table&>(type).GetField<std::int8_t>(field, 0);
  return number >= 0 && number < reflection::MaxBaseType ? static_cast<reflection::BaseType>(number)
                                                         : reflection::MaxBaseType;
}

reflection::BaseType element_of(const reflection::Type& type) {
  return base_of(type, reflection::Type::VT_ELEMENT);
}

unsigned width_of(reflection::BaseType type) {
  return flatbuffers::IsScalar(type) ? static_cast<unsigned>(flatbuffers::GetTypeSize(type)) : 1;
}

std::uint64_t default_bits(const reflection::Field& field) {
  const double real = field.default_real();
  const reflection::BaseType type = base_of(*field.type());
  if (type == reflection::Float) return std::bit_cast<std::uint32_t>(static_cast<float>(real));
  if (type == reflection::Double) return std::bit_cast<std::uint64_t>(real);
  return static_cast<std::uint64_t>(field.default_integer());
}

/// Returns null if the declaration has no attribute of that name.
template <class Declared>
const reflection::KeyValue* find_attribute(const Declared& declared, const char* name) {
  return declared.attributes() ? declared.attributes()->LookupByKey(name) : nullptr;
}

/// Returns 0 if the field has no force_align; nothing if it is no power of two up to the largest.
std::optional<std::uint32_t> force_align_of(const reflection::Field& field) {
  const auto* attribute = find_attribute(field, "force_align");
  if (!attribute || !attribute->value()) return 0;
  std::uint32_t alignment = 0;
  const std::string_view digits = attribute->value()->string_view();
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, alignment);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (!is_power_of_two(alignment) || alignment > kLargestAlignment) return std::nullopt;
  return alignment;
}

std::string without_namespace(std::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

/// Returns the table, struct, enum or union that a type names among those declared; null if it names none.
template <class Declared>
const Declared* named(const flatbuffers::Vector<flatbuffers::Offset<Declared>>& declared,
                      const reflection::Type& type) {
  const auto index = static_cast<flatbuffers::uoffset_t>(type.index());  // -1 is beyond all
  return index < declared.size() ? declared.Get(index) : nullptr;
}

/// Returns the kind of a field, or nothing for a kind that is not supported.
std::optional<FieldKind> kind_of(const reflection::Schema& schema, const reflection::Type& type) {
  const bool is_vector = base_of(type) == reflection::Vector;
  const auto base = is_vector ? element_of(type) : base_of(type);
  const auto pick = [&](FieldKind one, FieldKind many) { return is_vector ? many : one; };
  if (base == reflection::UType) return pick(FieldKind::kUnionType, FieldKind::kUnionTypeVector);
  if (flatbuffers::IsScalar(base)) return pick(FieldKind::kScalar, FieldKind::kInlineVector);
  if (base == reflection::String) return pick(FieldKind::kString, FieldKind::kStringVector);
  if (base == reflection::Union && named(*schema.enums(), type)) {
    return pick(FieldKind::kUnion, FieldKind::kUnionVector);
  }
  const auto* object = base == reflection::Obj ? named(*schema.objects(), type) : nullptr;
  if (!object) return std::nullopt;
  return object->is_struct() ? pick(FieldKind::kStruct, FieldKind::kInlineVector)
                             : pick(FieldKind::kTable, FieldKind::kTableVector);
}

/// Returns whether a struct can have the size and the alignment that the schema gives it.
bool is_sound_struct(const reflection::Object& object) {
  return object.bytesize() > 0 && object.bytesize() <= kLargestStruct &&
         is_power_of_two(static_cast<std::uint64_t>(object.minalign())) &&
         object.bytesize() % object.minalign() == 0;
}

/// Returns the inline type of a field, a struct's member, or a vector's or array's element; nothing for a
/// struct that is wrong.
std::optional<InlineType> inline_type(const reflection::Schema& schema, const reflection::Type& type) {
  const bool is_many = base_of(type) == reflection::Vector || base_of(type) == reflection::Array;
  const auto base = is_many ? element_of(type) : base_of(type);
  const auto* object = base == reflection::Obj ? named(*schema.objects(), type) : nullptr;
  InlineType out;
  if (object && object->is_struct()) {
    if (!is_sound_struct(*object)) return std::nullopt;
    out.width = static_cast<std::uint32_t>(object->bytesize());
    out.natural_alignment = static_cast<std::uint32_t>(object->minalign());
    out.structure = static_cast<std::size_t>(type.index());
  } else if (flatbuffers::IsScalar(base)) {
    out.width = out.natural_alignment = width_of(base);
    out.is_float = flatbuffers::IsFloat(base);
    out.is_bool = base == reflection::Bool;
    out.is_signed = base == reflection::Byte || base == reflection::Short || base == reflection::Int ||
                    base == reflection::Long;
    const auto* declared = base == reflection::UType || out.is_float ? nullptr : named(*schema.enums(), type);
    if (declared && !declared->is_union()) out.enumeration = static_cast<std::size_t>(type.index());
  }
  return out;
}

Result<FieldType> convert_field(const reflection::Schema& schema, const reflection::Object& object,
                                const reflection::Field& field) {
  const auto refuse = [&](ErrorCode code, std::string_view why) {
    return make_error(code, "schema: field {}.{}{}", object.name()->string_view(),
                      field.name()->string_view(), why);
  };
  const auto kind = kind_of(schema, *field.type());
  if (!kind) return refuse(ErrorCode::kUnsupported, " is of a type that etstream does not know");
  const auto held = inline_type(schema, *field.type());
  if (!held) return refuse(ErrorCode::kCorrupt, " is no sound struct");
  FieldType out;
  static_cast<InlineType&>(out) = *held;
  out.name = field.name()->str();
  out.id = field.id();
  out.kind = *kind;
  out.required = field.required();
  out.deprecated = field.deprecated();
  out.is_c_string = find_attribute(field, "c_string") != nullptr;
  out.is_not_empty = find_attribute(field, "not_empty") != nullptr;
  out.type = static_cast<std::size_t>(std::max(field.type()->index(), 0));
  if (*kind == FieldKind::kScalar || *kind == FieldKind::kUnionType) {
    out.default_bits = field.optional() ? std::nullopt : std::optional(default_bits(field));
  } else if (*kind == FieldKind::kInlineVector) {
    const auto forced = force_align_of(field);
    if (!forced) {
      return refuse(ErrorCode::kCorrupt,
                    text(": its force_align is not a power of two up to {}", kLargestAlignment));
    }
    out.alignment = std::max(out.natural_alignment, *forced);
  }
  return out;
}

/// Returns whether the field before a field of unions holds their types; true for other fields.
bool is_paired(const TableType& table, std::size_t i) {
  const auto follows = [&](FieldKind kind) { return i > 0 && table.fields[i - 1].kind == kind; };
  if (table.fields[i].kind == FieldKind::kUnion) return follows(FieldKind::kUnionType);
  if (table.fields[i].kind == FieldKind::kUnionVector) return follows(FieldKind::kUnionTypeVector);
  return true;
}

Result<TableType> convert_table(const reflection::Schema& schema, const reflection::Object& object) {
  TableType table;
  table.name = without_namespace(object.name()->string_view());
  if (object.is_struct()) return table;
  for (const auto* field : *object.fields()) {
    ETSTREAM_ASSIGN(FieldType converted, convert_field(schema, object, *field));
    table.fields.push_back(std::move(converted));
  }
  std::ranges::sort(table.fields, {}, &FieldType::id);  // reflection lists them by name
  for (std::size_t i = 0; i < table.fields.size(); ++i) {
    const FieldType& field = table.fields[i];
    if (field.id != i || !is_paired(table, i)) {
      return make_error(ErrorCode::kCorrupt,
                        "schema: field {}.{} has id {}, which does not fit its neighbours", table.name,
                        field.name, field.id);
    }
  }
  return table;
}

Result<StructType> convert_struct(const reflection::Schema& schema, const reflection::Object& object) {
  StructType out;
  if (!object.is_struct()) return out;
  out.name = without_namespace(object.name()->string_view());
  for (const auto* field : *object.fields()) {
    const auto held = inline_type(schema, *field->type());
    if (!held || held->width == 0) {
      return make_error(ErrorCode::kUnsupported,
                        "schema: member {}.{} is of a type that etstream does not know in a struct", out.name,
                        field->name()->string_view());
    }
    StructMember member;
    static_cast<InlineType&>(member) = *held;
    member.name = field->name()->str();
    member.offset = field->offset();
    if (base_of(*field->type()) == reflection::Array) member.count = field->type()->fixed_length();
    out.members.push_back(std::move(member));
  }
  std::ranges::sort(out.members, {}, &StructMember::offset);
  std::uint64_t end = 0;
  for (const StructMember& member : out.members) {
    const std::uint64_t size = std::uint64_t{member.width} * member.count.value_or(1);
    if (member.offset < end ||
        !range_fits(member.offset, size, static_cast<std::uint64_t>(object.bytesize()))) {
      return make_error(ErrorCode::kCorrupt, "schema: member {}.{} does not fit its struct", out.name,
                        member.name);
    }
    end = member.offset + size;
  }
  return out;
}

/// Refuses structs that hold themselves, or are nested deeper than tables may be.
Result<void> check_nesting(const std::vector<StructType>& structs) {
  std::vector<bool> settled(structs.size());
  for (int depth = 0; depth < kDeepestTable; ++depth) {
    const std::vector<bool> before = settled;
    for (std::size_t i = 0; i < structs.size(); ++i) {
      const auto& members = structs[i].members;
      settled[i] = std::ranges::all_of(members, [&](const StructMember& member) {
        return !member.structure || before[*member.structure];
      });
    }
    if (settled == before) break;
  }
  const auto unsettled = std::ranges::find(settled, false);
  if (unsettled == settled.end()) return {};
  return make_error(ErrorCode::kCorrupt, "schema: struct {} is nested in itself, or too deep",
                    structs[static_cast<std::size_t>(unsettled - settled.begin())].name);
}

EnumType convert_enum(const reflection::Enum& declared) {
  EnumType out;
  out.name = without_namespace(declared.name()->string_view());
  out.is_flags = find_attribute(declared, "bit_flags") != nullptr;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * width_of(base_of(*declared.underlying_type())));
  for (const auto* value : *declared.values()) {
    out.values.push_back({value->name()->str(), static_cast<std::uint64_t>(value->value()) & mask});
  }
  return out;
}

Result<UnionType> convert_union(const reflection::Schema& schema, const reflection::Enum& declared) {
  UnionType out;
  out.name = without_namespace(declared.name()->string_view());
  for (const auto* value : *declared.values()) {
    const auto* type = value->union_type();
    if (!type || base_of(*type) == reflection::None) continue;
    const auto kind = kind_of(schema, *type);
    const bool is_struct = kind == FieldKind::kStruct && is_sound_struct(*named(*schema.objects(), *type));
    if ((!is_struct && kind != FieldKind::kTable && kind != FieldKind::kString) || value->value() < 1 ||
        value->value() > 255) {
      return make_error(
          ErrorCode::kCorrupt,
          "schema: member {} of union {} is not a table, a struct or a string, of a number from 1 to 255",
          value->name()->string_view(), out.name);
    }
    UnionMember member;
    if (is_struct) static_cast<InlineType&>(member) = *inline_type(schema, *type);
    member.name = value->name()->str();
    member.kind = *kind;
    member.type = static_cast<std::size_t>(std::max(type->index(), 0));
    const auto number = static_cast<std::size_t>(value->value());
    if (out.members.size() <= number) out.members.resize(number + 1);
    out.members[number] = std::move(member);
  }
  return out;
}

/// Returns the first of `all` whose `member` is `value`; null if there is none.
template <class T, class Member, class Value>
const T* find_by(const std::vector<T>& all, Member member, const Value& value) {
  const auto found = std::ranges::find(all, value, member);
  return found == all.end() ? nullptr : &*found;
}

template <class Declared>
using List = flatbuffers::Vector<flatbuffers::Offset<Declared>>;

std::string_view name_of(const reflection::KeyValue& attribute) { return attribute.key()->string_view(); }

template <class Declared>
std::string_view name_of(const Declared& declared) {
  return declared.name()->string_view();
}

/// Checks that the names in all of the lists, which `where` declares, are different. A list may be null.
template <class... Declared>
Result<void> check_lists(std::string_view where, const List<Declared>*... lists) {
  std::vector<std::string_view> names;
  const auto add = [&](const auto* list) {
    if (list == nullptr) return;
    for (const auto* declared : *list) names.push_back(name_of(*declared));
  };
  (add(lists), ...);
  const auto repeated = first_repeated(names);
  if (!repeated) return {};
  return make_error(ErrorCode::kCorrupt, "schema: {} declares {} twice", where, quote(*repeated));
}

template <class Declared>
Result<void> check_attributes(const Declared& declared) {
  // Values of enums have attributes since FlatBuffers 23.
  if constexpr (requires { declared.attributes(); }) {
    return check_lists(name_of(declared), declared.attributes());
  }
  return {};
}

/// Checks the attributes and the members of each in the list, and the attributes of these members.
template <class Declared, class Members>
Result<void> check_each(const List<Declared>* list, Members members_of) {
  if (list == nullptr) return {};
  for (const auto* declared : *list) {
    const auto* const members = (declared->*members_of)();
    ETSTREAM_TRY(check_attributes(*declared));
    ETSTREAM_TRY(check_lists(name_of(*declared), members));
    if (members == nullptr) continue;
    for (const auto* member : *members) ETSTREAM_TRY(check_attributes(*member));
  }
  return {};
}

/// Checks that no two tables, structs, enums or unions have one name, nor two services, two members of one of
/// these, or two attributes of one thing. FlatBuffers' parser would free one of the two, and go on using it.
/// The schema is one that FlatBuffers' verifier accepts. Error: kCorrupt with the name.
Result<void> check_names(const reflection::Schema& schema) {
  ETSTREAM_TRY(check_lists("it", schema.objects(), schema.enums()));
  ETSTREAM_TRY(check_lists("it", schema.services()));
  ETSTREAM_TRY(check_each(schema.objects(), &reflection::Object::fields));
  ETSTREAM_TRY(check_each(schema.enums(), &reflection::Enum::values));
  return check_each(schema.services(), &reflection::Service::calls);
}

using ByteVector = std::vector<std::byte>;

Result<ByteVector> content_of_schema(const std::string& path) {
  ETSTREAM_ASSIGN(const ByteSource source, ByteSource::file(path));
  if (source.size() > kLargestSchema) {
    return error_in(ErrorCode::kTooLarge, path, "{}, a schema has at most {}", readable_size(source.size()),
                    readable_size(kLargestSchema));
  }
  ByteVector out(source.size());
  ETSTREAM_TRY(source.read_at(0, out));
  return out;
}

/// The most namespaces of a schema: FlatBuffers' parser looks each one up among all that came before.
constexpr std::size_t kMostNamespaces = 8192;

std::size_t count_namespaces(std::span<const std::byte> schema) {
  const std::string_view words(reinterpret_cast<const char*>(schema.data()), schema.size());
  constexpr std::string_view kWord = "namespace";
  std::size_t out = 0;
  for (std::size_t at = words.find(kWord); at != std::string_view::npos; at = words.find(kWord, at + 1))
    ++out;
  return out;
}

Error too_many_namespaces(const std::string& path) {
  return error_in(ErrorCode::kTooLarge, path,
                  "the schema has more than {} namespaces, which takes too long to parse", kMostNamespaces);
}

/// A bound on the bytes that are read of included files. Each include reads some of the files before it
/// again.
struct IncludeWork {
  static constexpr std::uint64_t kMostTimes = 256;

  bool admits(const std::string& path, std::span<const std::byte> content) {
    constexpr std::uint64_t kOpening = 4096;  // takes as long as so many bytes
    read += content.size() + kOpening;
    if (seen.insert(path).second) {
      given += content.size() + kOpening;
      namespaces += count_namespaces(content);
    }
    return read <= kMostTimes * given;
  }

  std::set<std::string> seen;
  std::uint64_t given = 0;
  std::uint64_t read = 0;
  std::size_t namespaces = 0;  // in files that were seen
};

/// Makes FlatBuffers read the files that this thread's schemas include as content_of_schema() does, while one
/// lives: they must be regular and not too large, and are noted as inputs. FlatBuffers' own functions would
/// wait for a FIFO.
class CheckedIncludes {
 public:
  CheckedIncludes() {
    before();
    if (living++ == 0) work = {};
  }
  CheckedIncludes(const CheckedIncludes&) = delete;
  CheckedIncludes& operator=(const CheckedIncludes&) = delete;
  ~CheckedIncludes() { --living; }

  /// Returns the error of an existing file that could not be loaded, if there is one.
  [[nodiscard]] static std::optional<Error> take_error() { return std::exchange(error, std::nullopt); }

 private:
  struct Functions {
    flatbuffers::LoadFileFunction load;
    flatbuffers::FileExistsFunction exists;
  };

  /// Returns FlatBuffers' own functions, which stay in force for schemas that others parse.
  static const Functions& before() {
    static const Functions kBefore = {flatbuffers::SetLoadFileFunction(&load),
                                      flatbuffers::SetFileExistsFunction(&exists)};
    return kBefore;
  }
  static bool exists(const char* path) {
    if (living == 0) return before().exists(path);
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }
  static bool load(const char* path, bool binary, std::string* out) {
    if (living == 0) return before().load(path, binary, out);
    auto content = content_of_schema(path);
    if (!content) {
      // The parser itself reports that there is no such file, with the line that asks for it.
      if (content.error().code != ErrorCode::kNotFound) error = content.error();
      return false;
    }
    if (!work.admits(path, *content)) {
      error = error_in(ErrorCode::kTooLarge, path,
                       "the schema includes so many files, or one so often, that reading it again at each "
                       "include, as FlatBuffers' parser does, takes more than {} times its size",
                       IncludeWork::kMostTimes);
      return false;
    }
    if (work.namespaces > kMostNamespaces) {
      error = too_many_namespaces(path);
      return false;
    }
    out->assign(reinterpret_cast<const char*>(content->data()), content->size());
    return true;
  }

  static inline thread_local int living = 0;
  static inline thread_local IncludeWork work;
  static inline thread_local std::optional<Error> error;
};

bool is_binary(std::span<const std::byte> schema) {
  constexpr std::size_t kAt = sizeof(flatbuffers::uoffset_t);
  return schema.size() >= kAt + flatbuffers::kFileIdentifierLength &&
         flatbuffers::BufferHasIdentifier(schema.data(), reflection::SchemaIdentifier());
}

/// Refuses defaults that a binary schema can't hold, as it stores them as signed integers.
Result<void> check_defaults(const flatbuffers::Parser& parser, const std::string& path) {
  for (const flatbuffers::StructDef* table : parser.structs_.vec) {
    for (const flatbuffers::FieldDef* field : table->fields.vec) {
      std::uint64_t number = 0;
      if (field->value.type.base_type == flatbuffers::BASE_TYPE_ULONG &&
          flatbuffers::StringToNumber(field->value.constant.c_str(), &number) &&
          number > std::numeric_limits<std::int64_t>::max()) {
        return error_in(ErrorCode::kUnsupported, path, "{}.{} has a default over 2^63 - 1", table->name,
                        field->name);
      }
    }
  }
  return {};
}

}  // namespace

Result<Schema> Schema::from_binary(std::span<const std::byte> bfbs) {
  return without_exceptions([&]() -> Result<Schema> {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(bfbs.data());
    flatbuffers::Verifier verifier(bytes, bfbs.size());
    if (!reflection::VerifySchemaBuffer(verifier)) {
      return make_error(ErrorCode::kCorrupt, "schema: not a binary FlatBuffers schema (.bfbs)");
    }
    const reflection::Schema& source = *reflection::GetSchema(bytes);
    if (!source.root_table()) {
      return make_error(ErrorCode::kCorrupt, "schema: it declares no root_type");
    }
    ETSTREAM_TRY(check_names(source));
    Schema schema;
    for (const auto* object : *source.objects()) {
      ETSTREAM_ASSIGN(TableType table, convert_table(source, *object));
      schema.tables_.push_back(std::move(table));
      ETSTREAM_ASSIGN(StructType structure, convert_struct(source, *object));
      schema.structs_.push_back(std::move(structure));
    }
    ETSTREAM_TRY(check_nesting(schema.structs_));
    const auto root = std::find(source.objects()->begin(), source.objects()->end(), source.root_table());
    if (root == source.objects()->end()) {
      return make_error(ErrorCode::kCorrupt, "schema: its root_type is not one of its tables");
    }
    schema.root_ = static_cast<std::size_t>(root - source.objects()->begin());
    for (const auto* declared : *source.enums()) {
      UnionType converted;
      if (declared->is_union()) {
        ETSTREAM_ASSIGN(converted, convert_union(source, *declared));
      }
      schema.unions_.push_back(std::move(converted));
      schema.enums_.push_back(declared->is_union() ? EnumType() : convert_enum(*declared));
    }
    if (source.file_ident()) schema.identifier_ = source.file_ident()->str();
    if (!schema.identifier_.empty() && schema.identifier_.size() != 4) {
      return make_error(ErrorCode::kCorrupt, "schema: its file_identifier is not of 4 bytes");
    }
    return schema;
  });
}

std::string_view unmet_rule(const FieldType& field, std::string_view value) {
  if (field.is_c_string && value.find('\0') != std::string_view::npos) {
    return "a name without a zero byte, at which ExecuTorch ends names";
  }
  if (field.is_not_empty && value.empty()) return "a name that is not empty";
  const bool is_name = field.is_c_string || field.is_not_empty;
  if (is_name && value.size() > kLongestString) return "a name of at most 1 MiB";
  return {};
}

const EnumValue* EnumType::find(std::uint64_t bits) const { return find_by(values, &EnumValue::bits, bits); }

const EnumValue* EnumType::find(std::string_view value_name) const {
  return find_by(values, &EnumValue::name, value_name);
}

std::optional<std::uint8_t> UnionType::number_of(std::string_view member) const {
  if (member == "NONE") return std::uint8_t{0};
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] && members[i]->name == member) return static_cast<std::uint8_t>(i);
  }
  return std::nullopt;
}

std::optional<std::size_t> Schema::find_table(std::string_view name) const {
  const TableType* const found = find_by(tables_, &TableType::name, name);
  return found ? std::optional(static_cast<std::size_t>(found - tables_.data())) : std::nullopt;
}

std::optional<std::size_t> Schema::find_field(std::size_t table, std::string_view name) const {
  const FieldType* const found = find_by(tables_[table].fields, &FieldType::name, name);
  return found ? std::optional<std::size_t>(found->id) : std::nullopt;
}

Result<void> Schema::add_field(std::string_view table, FieldType field) {
  const auto index = find_table(table);
  if (!index || find_field(*index, field.name)) {
    return make_error(ErrorCode::kInvalidArgument, "schema: there is no table {} without a field {}", table,
                      field.name);
  }
  field.id = static_cast<std::uint16_t>(tables_[*index].fields.size());
  tables_[*index].fields.push_back(std::move(field));
  return {};
}

void Schema::take_string_rules(const Schema& known) {
  for (const TableType& table : known.tables_) {
    const auto index = find_table(table.name);
    if (!index) continue;
    for (const FieldType& field : table.fields) {
      const auto mine = find_field(*index, field.name);
      if (!mine) continue;
      tables_[*index].fields[*mine].is_c_string |= field.is_c_string;
      tables_[*index].fields[*mine].is_not_empty |= field.is_not_empty;
    }
  }
}

Result<void> Schema::set_alignment(std::string_view table, std::string_view field, std::uint64_t alignment) {
  const auto table_index = find_table(table);
  const auto field_index = table_index ? find_field(*table_index, field) : std::nullopt;
  if (!field_index || tables_[*table_index].fields[*field_index].kind != FieldKind::kInlineVector) {
    return make_error(ErrorCode::kInvalidArgument, "schema: there is no vector of scalars {}.{} to align",
                      table, field);
  }
  FieldType& target = tables_[*table_index].fields[*field_index];
  if (!is_power_of_two(alignment) || alignment < target.natural_alignment || alignment > kLargestAlignment) {
    return make_error(ErrorCode::kInvalidArgument,
                      "alignment {} of {}.{} is not a power of two from {} to {}", alignment, table, field,
                      target.natural_alignment, kLargestAlignment);
  }
  target.alignment = static_cast<std::uint32_t>(alignment);
  return {};
}

Result<ByteVector> compile_schema(const std::string& path, const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ByteVector> {
    ETSTREAM_ASSIGN(ByteVector source, content_of_schema(path));
    if (is_binary(source)) return source;
    if (count_namespaces(source) > kMostNamespaces) return too_many_namespaces(path);
    const std::string words(reinterpret_cast<const char*>(source.data()), source.size());
    if (const std::size_t zero = words.find('\0'); zero != std::string::npos) {
      return error_in(ErrorCode::kCorrupt, path,
                      "neither a schema's text nor a binary schema: a zero byte at offset {}", zero);
    }
    const std::string own_folder = flatbuffers::StripFileName(path);
    std::vector<const char*> folders;
    folders.reserve(include_folders.size() + 2);
    for (const std::string& folder : include_folders) folders.push_back(folder.c_str());
    folders.push_back(own_folder.c_str());
    folders.push_back(nullptr);

    flatbuffers::Parser parser(parser_options());
    const CheckedIncludes checked;
    const bool parsed = parser.Parse(words.c_str(), folders.data(), path.c_str());
    if (auto error = CheckedIncludes::take_error()) return *std::move(error);
    if (!parsed) return parser_error(parser);
    ETSTREAM_TRY(check_defaults(parser, path));
    parser.Serialize();
    const auto bytes =
        std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
    return ByteVector(bytes.begin(), bytes.end());
  });
}

Result<LoadedSchema> load_schema(const std::string& path, const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<LoadedSchema> {
    LoadedSchema out;
    ETSTREAM_ASSIGN(out.binary, compile_schema(path, include_folders));
    auto loaded = Schema::from_binary(out.binary);
    if (!loaded) return error_in(loaded.error().code, path, "{}", loaded.error().message);
    out.schema = std::move(loaded).value();
    const auto* extension = reflection::GetSchema(out.binary.data())->file_ext();
    out.file_extension = extension && extension->size() > 0 ? extension->str() : "bin";
    return out;
  });
}

flatbuffers::IDLOptions parser_options() {
  flatbuffers::IDLOptions out;
  out.no_warnings = true;
  out.binary_schema_builtins = true;                        // force_align
  out.lang_to_generate = flatbuffers::IDLOptions::kBinary;  // which has all that a schema can say
  return out;
}

Error parser_error(const flatbuffers::Parser& parser) {
  // The message is "/WHOLE/PATH/OF/FILE:LINE: COLUMN: error: WHAT"; without a file, it begins with LINE.
  constexpr std::string_view kBeforeWhat = ": error: ";
  const std::string& file = parser.file_being_parsed_;
  std::string_view rest = parser.error_;
  if (!file.empty()) {
    const std::string whole = flatbuffers::AbsolutePath(file) + ':';
    if (rest.starts_with(whole)) rest.remove_prefix(whole.size());
  }
  const std::string_view line = rest.substr(0, rest.find(':'));
  if (const std::size_t at = rest.find(kBeforeWhat); at != std::string_view::npos) {
    rest.remove_prefix(at + kBeforeWhat.size());
  }
  return make_error(ErrorCode::kCorrupt, "{}{}line {}: {}", file, file.empty() ? "" : ": ", line,
                    printable(rest));
}

}  // namespace etstream
