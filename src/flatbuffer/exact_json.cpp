// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/exact_json.h"

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/json_value_reader.h"
#include "flatbuffer/json_writer.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_packer.h"
#include "flatbuffer/schema_source.h"
#include "flatbuffer/size_prefix.h"

namespace etstream {

struct ExactJson::State {
  Schema schema;
  Schema without_identifier;
};

Result<ExactJson> ExactJson::open(const std::string& schema,
                                  const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<ExactJson> {
    ETSTREAM_ASSIGN(const auto binary, compile_schema(schema, include_folders));
    auto loaded = Schema::from_binary(binary);
    if (!loaded) return make_error(loaded.error().code, schema, ": ", loaded.error().message);
    auto state = std::make_shared<State>();
    state->schema = std::move(loaded).value();
    state->without_identifier = state->schema;
    state->without_identifier.clear_identifier();
    return ExactJson(std::move(state));
  });
}

Result<void> ExactJson::decompile(const ByteSource& file, const ExactJsonOptions& options, Sink& sink) const {
  return without_exceptions([&]() -> Result<void> {
    ByteSource flatbuffer = file;
    if (options.size_prefixed) {
      ETSTREAM_ASSIGN(flatbuffer, without_size_prefix(file, file.name()));
    }
    const Schema& schema = options.identifier ? state_->schema : state_->without_identifier;
    ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, std::move(flatbuffer), file.name()));
    ETSTREAM_TRY(verify_flatbuffer(view));
    JsonOptions json{.compact = options.compact, .defaults = options.defaults, .references = {}};
    if (options.leave_out_over) {
      json.references = JsonReferences{options.file_name, 0, *options.leave_out_over};
    }
    return write_json(view, json, sink);
  });
}

Result<Layout> ExactJson::compile(const ByteSource& json, const std::string& folder,
                                  FlatbufferOrder order) const {
  return without_exceptions([&]() -> Result<Layout> {
    ETSTREAM_ASSIGN(const auto values, JsonValueReader::parse(state_->schema, json, folder));
    const bool is_flatc = order == FlatbufferOrder::kFlatc;
    return pack(state_->schema, *values, {.order = is_flatc ? ObjectOrder::kFlatc : ObjectOrder::kObjectApi});
  });
}

}  // namespace etstream
