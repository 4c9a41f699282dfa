// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_schema.h"

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/embedded_schema.h"
#include "flatbuffer/schema_source.h"
#include "program_bfbs_generated.h"

namespace etstream {
namespace {

Result<const Schema*> built_in() { return embedded_schema<program::ProgramBinarySchema>(); }

/// Finds what a schema lacks of another one, whose files and code go by it.
class SchemaComparison {
 public:
  SchemaComparison(const Schema& known, const Schema& given, std::string_view path)
      : known_(known), given_(given), path_(path) {}

  Result<void> run() const {
    if (given_.identifier() != known_.identifier() || given_.root().name != known_.root().name) {
      return differs("the root table or the file identifier");
    }
    for (const TableType& table : known_.tables()) {
      if (table.fields.empty()) continue;
      const auto index = given_.find_table(table.name);
      if (!index) return differs(text("table {}", table.name));
      for (const FieldType& field : table.fields) {
        const auto& fields = given_.tables()[*index].fields;
        if (field.id >= fields.size() || !is_same(field, fields[field.id])) {
          return differs(text("field {}.{}", table.name, field.name));
        }
      }
    }
    return {};
  }

 private:
  [[nodiscard]] bool is_same(const FieldType& known, const FieldType& given) const {
    if (known.name != given.name || known.kind != given.kind || known.width != given.width ||
        known.is_float != given.is_float || known.default_bits != given.default_bits) {
      return false;
    }
    if (known.kind == FieldKind::kTable || known.kind == FieldKind::kTableVector) {
      return known_.tables()[known.type].name == given_.tables()[given.type].name;
    }
    return known.kind != FieldKind::kUnion || has_members(known, given);
  }

  [[nodiscard]] bool has_members(const FieldType& known, const FieldType& given) const {
    const auto& members = known_.unions()[known.type].members;
    for (std::size_t number = 0; number < members.size(); ++number) {
      if (!members[number]) continue;
      const UnionMember* member = given_.unions()[given.type].member(number);
      if (!member || member->kind != members[number]->kind || member->name != members[number]->name) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Error differs(std::string_view what) const {
    return make_error(
        ErrorCode::kUnsupported,
        "{}: {} is not that of ExecuTorch 1.5.1, or not there: only schemas that add to it can be used",
        path_, what);
  }

  const Schema& known_;
  const Schema& given_;
  const std::string_view path_;
};

}  // namespace

Result<ProgramSchema> ProgramSchema::load(const std::string& path,
                                          const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ProgramSchema> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(path, include_folders));
    Schema& given = loaded.schema;
    ETSTREAM_ASSIGN(const Schema* known, built_in());
    ETSTREAM_TRY(SchemaComparison(*known, given, path).run());
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
