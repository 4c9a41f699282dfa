// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/exact_json.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json/json_value_reader.h"
#include "flatbuffer/json/json_writer.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/schema_source.h"

namespace etstream {

namespace {

/// Warns of what is behind the flatbuffer: the JSON does not have it. Zeros that align the end, as the schema
/// asks for, are part of the flatbuffer.
Result<void> warn_of_rest(const FlatbufferView& view, const Warn& warn) {
  std::uint64_t alignment = sizeof(std::uint64_t);
  for (const TableType& table : view.schema().tables()) {
    for (const FieldType& field : table.fields) {
      alignment = std::max<std::uint64_t>({alignment, field.alignment, field.natural_alignment});
    }
  }
  const std::uint64_t size = view.file().size();
  ETSTREAM_ASSIGN(const std::uint64_t end, end_of_objects(view));
  ETSTREAM_ASSIGN(const auto nonzero, view.find_nonzero(end, std::min(size, end + alignment)));
  if (!nonzero && size - end < alignment) return {};
  warn(with_advice(error_in(ErrorCode::kUnsupported, view.name(),
                            "the JSON has the flatbuffer alone, and not the {} behind it, such as segments",
                            counted(size - end, "byte")),
                   {AdviceTerm::kSegmentsFrom, " takes those of a program from it again"}));
  return {};
}

}  // namespace

struct ExactJson::State : LoadedSchema {};

Result<ExactJson> ExactJson::open(const std::string& schema,
                                  const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ExactJson> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(schema, include_folders));
    auto state = std::make_shared<const State>(State{std::move(loaded)});
    return ExactJson(std::move(state));
  });
}

Result<void> ExactJson::decompile(const ByteSource& file, const ExactJsonOptions& options, Sink& sink) const {
  return without_exceptions([&]() -> Result<void> {
    ByteSource flatbuffer = file;
    if (options.size_prefixed) {
      ETSTREAM_ASSIGN(flatbuffer, without_size_prefix(file, file.name()));
    }
    ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(state_->schema, std::move(flatbuffer), file.name(),
                                                          !options.identifier));
    ETSTREAM_TRY(verify_flatbuffer(view, {.typed_unions = true}));
    ETSTREAM_ASSIGN(const auto unknown, find_unknown_field(view));
    if (unknown) {
      return make_error(ErrorCode::kUnsupported, "{}; a schema that has all of its fields loses none",
                        unknown->message);
    }
    if (options.warn) ETSTREAM_TRY(warn_of_rest(view, options.warn));
    JsonOptions json{.compact = options.compact, .defaults = options.defaults, .references = {}};
    if (options.leave_out_over) {
      json.references = JsonReferences{options.file_name, 0, *options.leave_out_over};
    }
    return write_json(view, json, sink);
  });
}

Result<FilePlan> ExactJson::compile(const ByteSource& json, const std::string& folder,
                                    FlatbufferOrder order) const {
  return without_exceptions([&]() -> Result<FilePlan> {
    ETSTREAM_ASSIGN(const auto values, JsonValueReader::parse(state_->schema, json, folder));
    const bool is_flatc = order == FlatbufferOrder::kFlatc;
    return pack(state_->schema, *values, {.order = is_flatc ? ObjectOrder::kFlatc : ObjectOrder::kObjectApi});
  });
}

const std::string& ExactJson::file_extension() const noexcept { return state_->file_extension; }

}  // namespace etstream
