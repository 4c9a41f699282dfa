// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_schema.h"

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_source.h"
#include "program_bfbs_generated.h"

namespace etstream {
namespace {

Result<const Schema*> built_in() { return embedded_schema<program::ProgramBinarySchema>(); }

bool has_same_members(const UnionType& known, const UnionType& given) {
  for (std::size_t number = 0; number < known.members.size(); ++number) {
    if (!known.members[number]) continue;
    const UnionMember* member = given.member(number);
    if (!member || member->kind != known.members[number]->kind ||
        member->name != known.members[number]->name) {
      return false;
    }
  }
  return true;
}

bool is_same(const Schema& known_schema, const FieldType& known, const Schema& given_schema,
             const FieldType& given) {
  if (known.name != given.name || known.kind != given.kind || known.width != given.width ||
      known.is_float != given.is_float || known.default_bits != given.default_bits) {
    return false;
  }
  if (known.kind == FieldKind::kTable || known.kind == FieldKind::kTableVector) {
    return known_schema.tables()[known.type].name == given_schema.tables()[given.type].name;
  }
  return known.kind != FieldKind::kUnion ||
         has_same_members(known_schema.unions()[known.type], given_schema.unions()[given.type]);
}

/// Returns the first part of `known` that files and code need and that `given` lacks; empty if it has all.
std::string find_difference(const Schema& known, const Schema& given) {
  if (given.identifier() != known.identifier() || given.root().name != known.root().name) {
    return "the root table or the file identifier";
  }
  for (const TableType& table : known.tables()) {
    if (table.fields.empty()) continue;
    const auto index = given.find_table(table.name);
    if (!index) return text("table {}", table.name);
    const auto& fields = given.tables()[*index].fields;
    for (const FieldType& field : table.fields) {
      if (field.id >= fields.size() || !is_same(known, field, given, fields[field.id])) {
        return text("field {}.{}", table.name, field.name);
      }
    }
  }
  return "";
}

}  // namespace

Result<ProgramSchema> ProgramSchema::load(const std::string& path,
                                          const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ProgramSchema> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(path, include_folders));
    Schema& given = loaded.schema;
    ETSTREAM_ASSIGN(const Schema* known, built_in());
    if (const std::string what = find_difference(*known, given); !what.empty()) {
      return error_in(
          ErrorCode::kUnsupported, path,
          "{} is not that of ExecuTorch 1.5.1, or not there: only schemas that add to it can be used", what);
    }
    given.take_string_rules(*known);
    ProgramSchema out;
    out.schema_ = std::make_shared<const Schema>(std::move(given));
    return out;
  });
}

Result<std::shared_ptr<const Schema>> ProgramSchema::schema() const {
  if (schema_) return schema_;
  ETSTREAM_ASSIGN(const Schema* known, built_in());
  return std::shared_ptr<const Schema>(std::shared_ptr<const Schema>(), known);
}

}  // namespace etstream
