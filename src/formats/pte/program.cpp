// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/match.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "flatbuffer/schema.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"
#include "formats/segments/file_kind.h"
#include "program_bfbs_generated.h"

namespace etstream {
namespace {

/// Returns about as many bytes as a value takes in the file.
std::uint64_t size_of(const ValueInfo& info) {
  constexpr std::uint64_t kTables = 32;
  const auto* const tensor = std::get_if<TensorInfo>(&info);
  return kTables + (tensor ? 5 * std::uint64_t{tensor->sizes.size()} : 0);
}

/// Reads the values that a method lists in `field`, which may be one value many times.
Result<std::vector<ValueInfo>> read_values(const pte::Method& method, const BoundField& field,
                                           FileBudget& budget) {
  ETSTREAM_ASSIGN(const auto values, method.values());
  ETSTREAM_ASSIGN(const auto numbers, method.numbers<std::int32_t>(field));
  ETSTREAM_ASSIGN(const auto indices, numbers.all());
  std::vector<ValueInfo> out;
  for (const std::int32_t index : indices) {
    if (index < 0 || std::cmp_greater_equal(index, values.size())) {
      return method.corrupt(text("indices below {} in {}", values.size(), field.full_name()),
                            std::to_string(index));
    }
    ETSTREAM_ASSIGN(const pte::Value value, values.at(static_cast<std::uint64_t>(index)));
    ETSTREAM_ASSIGN(const auto held, value.held());
    ETSTREAM_ASSIGN(ValueInfo info, pte::Held::info_of(held));
    ETSTREAM_TRY(budget.reach(value.position(), size_of(info)));
    out.push_back(std::move(info));
  }
  return out;
}

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

ByteSource bytes_of(const void* data, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  return ByteSource::owned({bytes, bytes + size});
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Parses an integer; returns nothing for other text.
Result<std::optional<std::int64_t>> integer_in(std::string_view text) {
  std::int64_t out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec == std::errc::invalid_argument || read.ptr != text.data() + text.size()) {
    return std::optional<std::int64_t>();
  }
  if (read.ec == std::errc()) return std::optional(out);
  return make_error(ErrorCode::kInvalidArgument, "metadata: expected an integer of 64 bits, found {}",
                    quote(text));
}

/// Parses a number; returns nothing for other text, such as nan.
std::optional<double> double_in(std::string_view text) {
  double out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool is_number = text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
  return is_number && read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(out)
                                                                                      : std::nullopt;
}

/// Parses a list of integers; returns nothing for other text.
Result<std::optional<std::vector<std::int64_t>>> list_in(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return std::optional<std::vector<std::int64_t>>();
  std::string_view rest = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> out;
  while (!trimmed(rest).empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view element = trimmed(rest.substr(0, comma));
    ETSTREAM_ASSIGN(const auto integer, integer_in(element));
    if (!integer) return std::optional<std::vector<std::int64_t>>();
    out.push_back(*integer);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return std::optional(std::move(out));
}

}  // namespace

ProgramFile::ProgramFile(std::unique_ptr<const pte::Program> model) : model_(std::move(model)) {}
ProgramFile::ProgramFile(ProgramFile&&) noexcept = default;
ProgramFile& ProgramFile::operator=(ProgramFile&&) noexcept = default;
ProgramFile::~ProgramFile() = default;

Result<ProgramFile> ProgramFile::open(ByteSource file, std::string name, const ProgramSchema& schema) {
  const ByteSource whole = file;
  auto opened = without_exceptions([&]() -> Result<ProgramFile> {
    ETSTREAM_ASSIGN(auto tables, schema.schema());
    if (name.empty()) name = file.name();
    ETSTREAM_ASSIGN(const ExtendedHeader header, read_extended_header(file, name));
    ETSTREAM_ASSIGN(auto model,
                    pte::Program::open(std::move(tables), std::move(file), header, std::move(name)));
    return ProgramFile(std::move(model));
  });
  return unless_other(whole, {"a program (ET12)", {FileKind::kProgram}}, std::move(opened));
}

const ByteSource& ProgramFile::file() const noexcept { return model_->file(); }
std::uint64_t ProgramFile::flatbuffer_size() const noexcept { return model_->header().program_size; }

Result<std::uint32_t> ProgramFile::version() const {
  return without_exceptions([&] { return model_->version(); });
}

Result<std::vector<MethodInfo>> ProgramFile::methods() const {
  return without_exceptions([&]() -> Result<std::vector<MethodInfo>> {
    std::vector<MethodInfo> methods;
    FileBudget budget(model_->view().name(), model_->view().file().size());
    ETSTREAM_TRY(for_each(model_->methods(), [&](const pte::Method& table) -> Result<void> {
      MethodInfo& method = methods.emplace_back();
      ETSTREAM_ASSIGN(method.name, table.name());
      ETSTREAM_ASSIGN(method.inputs, read_values(table, model_->fields().execution_plan.inputs, budget));
      ETSTREAM_ASSIGN(method.outputs, read_values(table, model_->fields().execution_plan.outputs, budget));
      return {};
    }));
    return methods;
  });
}

Result<std::vector<SegmentInfo>> ProgramFile::segments() const {
  return without_exceptions([&]() -> Result<std::vector<SegmentInfo>> {
    ETSTREAM_ASSIGN(const auto segments, model_->segments());
    return std::vector<SegmentInfo>(segments.begin(), segments.end());
  });
}

Result<std::uint64_t> ProgramFile::segment_alignment() const {
  ETSTREAM_ASSIGN(const auto segments, model_->segments());
  return observed_alignment(segments);
}

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

ByteSource encode(const MetadataValue& value) {
  return match(
      value, [](const std::string& string) { return bytes_of(string.data(), string.size()); },
      [](const std::vector<std::int64_t>& list) {
        return bytes_of(list.data(), list.size() * sizeof(std::int64_t));
      },
      [](const auto& number) { return bytes_of(&number, sizeof(number)); });
}

Result<MetadataValue> parse_metadata_value(std::string_view text) {
  return without_exceptions([&]() -> Result<MetadataValue> {
    ETSTREAM_ASSIGN(const auto integer, integer_in(text));
    if (integer) return MetadataValue(*integer);
    if (const auto number = double_in(text)) return MetadataValue(*number);
    ETSTREAM_ASSIGN(auto list, list_in(text));
    if (list) return MetadataValue(std::move(*list));
    const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return MetadataValue(std::string(is_quoted ? text.substr(1, text.size() - 2) : text));
  });
}

Result<std::vector<MetadataEntry>> read_metadata(const ProgramFile& program) {
  return without_exceptions([&]() -> Result<std::vector<MetadataEntry>> {
    std::vector<MetadataEntry> out;
    const pte::Program& model = program.model();
    ETSTREAM_TRY(for_each(model.named_data(), [&](const pte::NamedData& named) -> Result<void> {
      ETSTREAM_ASSIGN(const auto key, named.key());
      if (!key || !key->starts_with(kMetadataPrefix)) return {};
      ETSTREAM_ASSIGN(const std::uint32_t segment, named.segment());
      ETSTREAM_ASSIGN(ByteSource value, model.segment_data(named.position(), segment));
      out.push_back({key->substr(kMetadataPrefix.size()), std::move(value)});
      return {};
    }));
    return out;
  });
}

Result<std::string> describe(const MetadataEntry& entry) {
  return without_exceptions([&]() -> Result<std::string> {
    constexpr std::uint64_t kMost = 200;
    std::string text(static_cast<std::size_t>(std::min(kMost, entry.value.size())), '\0');
    ETSTREAM_TRY(entry.value.read_at(0, std::as_writable_bytes(std::span(text))));
    const bool is_cut = entry.value.size() > kMost;
    // The cut may go through a character.
    for (int i = 0; is_cut && i < 3 && !is_utf8(text); ++i) text.pop_back();
    const bool is_text = is_utf8(text) && std::all_of(text.begin(), text.end(), [](char c) {
                           return c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= ' ';
                         });
    if (is_text) return etstream::text("\"{}\"{}", text, is_cut ? "..." : "");
    if (entry.value.size() != sizeof(std::int64_t)) return counted(entry.value.size(), "byte");
    std::int64_t number = 0;
    std::memcpy(&number, text.data(), sizeof(number));
    return std::to_string(number);
  });
}

}  // namespace etstream
