// SPDX-License-Identifier: BSD-3-Clause
#include "random_schema.h"

#include <doctest/doctest.h>
#include <flatbuffers/idl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>

#include "core/base/text.h"

namespace etstream::testing {
namespace {

constexpr std::size_t kMostTables = 9;  // so that T0, T1, ... are in order of their names, too

struct ScalarType {
  const char* name;
  unsigned width;
  bool is_signed;
};
constexpr std::array kIntegers = {ScalarType{"byte", 1, true},  ScalarType{"ubyte", 1, false},
                                  ScalarType{"short", 2, true}, ScalarType{"ushort", 2, false},
                                  ScalarType{"int", 4, true},   ScalarType{"uint", 4, false},
                                  ScalarType{"long", 8, true},  ScalarType{"ulong", 8, false}};
constexpr std::array kFloats = {ScalarType{"float", 4, true}, ScalarType{"double", 8, true}};
constexpr ScalarType kBool = {"bool", 1, false};
constexpr std::array kFloatTexts = {"0",    "0.0",     "-0.0",    "1.5", "3.14", "-2.5e10", "1e-7",
                                    "1e38", "-1e-300", "6.25e-2", "nan", "inf",  "-inf"};

/// Returns a random default. A binary schema has no place for an unsigned default over 2^63 - 1: the parser
/// leaves 0 there.
std::int64_t random_integer(SeededRandom& random, const ScalarType& type) {
  const unsigned bits = 8 * type.width - (type.is_signed || type.width == 8 ? 1 : 0);
  const auto highest = static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1);
  const std::int64_t lowest = type.is_signed ? -highest - 1 : 0;
  switch (random.below(5)) {
    case 0:
      return 0;
    case 1:
      return lowest;
    case 2:
      return highest;
    case 3:
      return static_cast<std::int64_t>(random.below(100));
    default: {
      const auto value = static_cast<std::int64_t>(random.bits() >> (64 - bits));
      return type.is_signed && random.one_in(2) ? -value : value;
    }
  }
}

struct EnumType {
  std::string name;
  unsigned width = 0;
  std::vector<std::int64_t> values;  // of its members M0, M1, ...
};

struct UnionType {
  std::string name;
  std::size_t last_table = 0;  // the highest number among its members
};

struct Field {
  std::string text;             // "name:type = default"
  std::string attributes = {};  // ", required"
  unsigned slots = 1;
  bool can_be_required = false;
};

class Writer {
 public:
  explicit Writer(SeededRandom& random)
      : random_(random), tables_(1 + random.below(kMostTables)), has_gaps_(random.one_in(6)) {}

  std::string schema() {
    std::string out;
    if (random_.one_in(2)) out += "namespace deep.down;\n";
    for (std::uint64_t n = random_.below(4); n > 0; --n) out += enum_type();
    for (std::uint64_t n = random_.below(4); n > 0; --n) out += struct_type();
    for (std::uint64_t n = random_.below(4); n > 0; --n) out += union_type();
    for (std::size_t i = 0; i < tables_; ++i) out += table(i);
    out += text("root_type T{};\n", random_.below(tables_));
    if (random_.one_in(10)) return out;
    std::string identifier;
    for (int i = 0; i < 4; ++i) identifier += static_cast<char>('A' + random_.below(26));
    return out + text("file_identifier \"{}\";\n", identifier);
  }

 private:
  std::string enum_type() {
    const ScalarType type = random_.pick(kIntegers);
    std::set<std::int64_t> values;
    for (std::uint64_t n = 1 + random_.below(5); n > 0; --n) values.insert(random_integer(random_, type));
    EnumType made{text("E{}", enums_.size()), type.width, {values.begin(), values.end()}};
    std::string out = text("enum {} : {} {{", made.name, type.name);
    for (std::size_t i = 0; i < made.values.size(); ++i) out += text(" M{} = {},", i, made.values[i]);
    enums_.push_back(std::move(made));
    return out + " }\n";
  }

  /// Makes a struct of scalars and arrays, and, unless it has an alignment of its own, of the structs before
  /// it.
  std::string struct_type() {
    std::string out = text("struct S{}", structs_);
    const bool is_aligned = random_.one_in(3);
    if (is_aligned) out += text(" (force_align: {})", 8 << random_.below(3));
    out += " {";
    for (std::uint64_t i = 0, n = 1 + random_.below(4); i < n; ++i) {
      const bool nests = !is_aligned && structs_ > 0 && random_.one_in(4);
      const std::string type = nests ? text("S{}", random_.below(structs_)) : random_.pick(kIntegers).name;
      out += text(" m{}:{};", i, random_.one_in(3) ? text("[{}:{}]", type, 1 + random_.below(5)) : type);
    }
    ++structs_;
    return out + " }\n";
  }

  /// Makes a member of a union: a table mostly.
  std::string union_member(UnionType& made) {
    if (random_.one_in(5)) return "string";
    if (structs_ > 0 && random_.one_in(5)) return text("S{}", random_.below(structs_));
    const std::size_t member = random_.below(tables_);
    made.last_table = std::max(made.last_table, member);
    return text("T{}", member);
  }

  /// Makes a union. Its members may have gaps between their numbers, and a table may be there under several
  /// names.
  std::string union_type() {
    UnionType made{text("U{}", unions_.size()), 0};
    std::string out = text("union {} {{", made.name);
    std::uint64_t number = 0;
    for (std::uint64_t n = 1 + random_.below(4); n > 0; --n) {
      number += has_gaps_ && random_.one_in(2) ? 1 + random_.below(50) : 1;
      out += text(" N{} : {} = {},", number, union_member(made), number);
    }
    unions_.push_back(std::move(made));
    return out + " }\n";
  }

  std::string table(std::size_t number) {
    std::vector<Field> fields;
    const std::uint64_t count = random_.one_in(20) ? 40 : random_.below(12);
    for (std::uint64_t i = 0; i < count; ++i) {
      fields.push_back(field(number));
      decorate(fields.back());
      fields.back().text = text("f{}:{}", i, fields.back().text);
    }
    // The ids are in the order of the fields, or the fields in another order than their ids.
    if (random_.one_in(3)) {
      std::uint64_t slot = 0;
      for (Field& field : fields) {
        slot += field.slots;
        field.attributes += text(", id: {}", slot - 1);
      }
      random_.shuffle(fields);
    }
    std::string out = text("table T{} {{\n", number);
    for (const Field& field : fields) {
      out += "  " + field.text;
      if (!field.attributes.empty()) out += text(" ({})", field.attributes.substr(2));
      out += ";\n";
    }
    return out + "}\n";
  }

  void decorate(Field& field) {
    if (field.can_be_required && random_.one_in(6)) {
      field.attributes += ", required";
    } else if (random_.one_in(12)) {
      field.attributes += ", deprecated";
    }
  }

  Field field(std::size_t table) {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        return scalar();
      case 3:
        return enums_.empty() ? scalar() : enum_scalar();
      case 4:
        return {"string", "", 1, true};
      case 5:
      case 6:
        return scalar_vector();
      case 7: {
        const std::size_t child = random_.below(tables_);
        return {text("T{}", child), "", 1, child > table};
      }
      case 8:
        if (random_.one_in(2)) return {"[string]", "", 1, true};
        return {text("[T{}]", random_.below(tables_)), "", 1, true};
      case 9: {
        if (structs_ == 0) return scalar();
        const std::uint64_t type = random_.below(structs_);
        if (random_.one_in(2)) return {text("S{}", type), "", 1, true};
        return {text("[S{}]", type), "", 1, true};
      }
      case 10:
        if (unions_.empty()) return scalar();
        return {text("[{}]", random_.pick(unions_).name), "", 2, true};
      default: {
        if (unions_.empty()) return scalar();
        const UnionType& type = random_.pick(unions_);
        return {type.name, "", 2, type.last_table > table};
      }
    }
  }

  Field scalar() {
    const std::uint64_t kind = random_.below(11);
    if (kind == 0) return {std::string("bool") + pick_default({"", " = true", " = false", " = null"})};
    if (kind > kFloats.size()) {
      const ScalarType type = kIntegers[kind - kFloats.size() - 1];
      const std::string value = text(" = {}", random_integer(random_, type));
      return {type.name + pick_default({"", value, value, " = null"})};
    }
    const std::string value = text(" = {}", random_.pick(kFloatTexts));
    return {kFloats[kind - 1].name + pick_default({"", value, value, " = null"})};
  }

  Field enum_scalar() {
    const EnumType& type = random_.pick(enums_);
    const std::string value = text(" = M{}", random_.below(type.values.size()));
    const bool has_zero = std::count(type.values.begin(), type.values.end(), 0) != 0;
    return {type.name + pick_default({has_zero ? "" : value, value, " = null"})};
  }

  std::string pick_default(const std::vector<std::string>& choices) { return random_.pick(choices); }

  Field scalar_vector() {
    ScalarType type = random_.one_in(9)   ? kBool
                      : random_.one_in(4) ? random_.pick(kFloats)
                                          : random_.pick(kIntegers);
    std::string name = type.name;
    if (!enums_.empty() && random_.one_in(5)) {
      const EnumType& element = random_.pick(enums_);
      name = element.name;
      type.width = element.width;
    }
    Field out{text("[{}]", name), "", 1, true};
    // The parser would refuse values for those over 32; it takes the schema, and the builder the values.
    if (random_.one_in(3)) out.attributes = text(", force_align: {}", type.width << random_.below(8));
    return out;
  }

  SeededRandom& random_;
  std::uint64_t tables_;
  bool has_gaps_;  // between the numbers of a union's members
  std::vector<EnumType> enums_;
  std::vector<UnionType> unions_;
  std::uint64_t structs_ = 0;  // S0, S1, ...
};

}  // namespace

std::string random_schema(SeededRandom& random) { return Writer(random).schema(); }

std::vector<std::byte> compile_schema(const std::string& text) {
  flatbuffers::IDLOptions options;
  options.binary_schema_builtins = true;  // or force_align would be lost
  options.lang_to_generate =
      flatbuffers::IDLOptions::kCpp;  // which has unions of all kinds, and vectors of them
  flatbuffers::Parser parser(options);
  if (!parser.Parse(text.c_str())) {
    FAIL_CHECK(parser.error_);
    return {};
  }
  parser.Serialize();
  const auto bytes = std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace etstream::testing
