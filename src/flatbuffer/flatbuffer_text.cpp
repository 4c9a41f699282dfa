// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/flatbuffer_text.h"

#include <flatbuffers/idl.h>

#include "base/text.h"
#include "base/try.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/generate_text.h"
#include "flatbuffer/parser_pool.h"
#include "flatbuffer/schema.h"
#include "flatbuffer/schema_source.h"
#include "flatbuffer/size_prefix.h"
#include "flatbuffer/vector_alignment.h"

namespace etstream {
namespace {

using ByteVector = std::vector<std::byte>;

}  // namespace

struct FlatbufferText::State : LoadedSchema {
  std::string path;
  bool raises_alignments = false;
  std::unique_ptr<ParserPool> parsers;
};

Result<FlatbufferText> FlatbufferText::open(const std::string& schema,
                                            const std::vector<std::string>& include_folders) {
  return without_exceptions([&]() -> Result<FlatbufferText> {
    ETSTREAM_ASSIGN(LoadedSchema loaded, load_schema(schema, include_folders));
    auto state = std::make_shared<State>(State{std::move(loaded), schema, false, nullptr});
    ETSTREAM_ASSIGN(state->parsers, ParserPool::open(std::move(state->binary), schema));
    state->raises_alignments = has_alignment_over(state->schema, kLargestParserAlignment);
    if (state->raises_alignments && !state->parsers->nested_field().empty()) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: a force_align over {} in a schema with a flatbuffer in another, {}", schema,
                        kLargestParserAlignment, state->parsers->nested_field());
    }
    return FlatbufferText(std::move(state));
  });
}

Result<ByteVector> FlatbufferText::compile(std::string_view json, const std::string& name) const {
  return without_exceptions([&]() -> Result<ByteVector> {
    if (json.size() > kLargestJson) {
      return make_error(ErrorCode::kTooLarge, "{}: {} of JSON, at most {} can be compiled", name,
                        readable_size(json.size()), readable_size(kLargestJson));
    }
    if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
      return make_error(ErrorCode::kCorrupt, "{}: expected JSON, found a zero byte at offset {}", name, zero);
    }
    ETSTREAM_ASSIGN(auto parser, state_->parsers->take());
    if (!parser->ParseJson(std::string(json).c_str(), name.c_str())) return parser_error(*parser);
    const auto built =
        std::as_bytes(std::span(parser->builder_.GetBufferPointer(), parser->builder_.GetSize()));
    ByteVector out(built.begin(), built.end());
    state_->parsers->give_back(std::move(parser));
    if (!state_->raises_alignments) return out;
    return raise_alignments(std::move(out), state_->schema, kLargestParserAlignment, name);
  });
}

Result<std::string> FlatbufferText::decompile(std::span<const std::byte> flatbuffer,
                                              const DecompileOptions& options,
                                              const std::string& name) const {
  return without_exceptions([&]() -> Result<std::string> {
    const State& state = *state_;
    if (!state.parsers->nested_field().empty()) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: {} has a flatbuffer in another, {}, which is not checked and so not made text",
                        name, state.path, state.parsers->nested_field());
    }
    if (options.identifier && state.schema.identifier().empty()) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: {} has no file_identifier to look for; identifier = false does without", name,
                        state.path);
    }
    // A copy, so that what was checked is what is read.
    ByteVector bytes;
    bytes.assign(flatbuffer.begin(), flatbuffer.end());
    if (options.size_prefixed) {
      ETSTREAM_ASSIGN(const ByteSource plain, without_size_prefix(ByteSource::memory(flatbuffer), name));
      ETSTREAM_TRY(plain.read_at(0, bytes));
    }
    const Schema& schema = options.identifier ? state.schema : state.without_identifier;
    ETSTREAM_ASSIGN(const auto view, FlatbufferView::open(schema, ByteSource::memory(bytes), name));
    ETSTREAM_TRY(verify_flatbuffer(view, {.walks_bytes = true, .typed_unions = true}));

    ETSTREAM_ASSIGN(auto parser, state.parsers->take());
    parser->opts.strict_json = options.strict_json;
    parser->opts.output_default_scalars_in_json = options.defaults;
    std::string out;
    if (!generate_text(*parser, bytes.data(), out)) {
      return make_error(ErrorCode::kCorrupt,
                        "{}: a string that is not UTF-8, or nothing in a vector of unions", name);
    }
    state.parsers->give_back(std::move(parser));
    return out;
  });
}

const std::string& FlatbufferText::file_extension() const noexcept { return state_->file_extension; }

}  // namespace etstream
