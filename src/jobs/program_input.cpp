// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/program_input.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "etstream/program_description.h"

namespace etstream {
namespace {

/// Whether a file is JSON: nothing else that programs are made from begins so.
Result<bool> is_json(const ByteSource& file) {
  std::array<char, 64> begin{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), file.size()));
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(begin)).first(n)));
  const std::string_view text_of(begin.data(), n);
  const auto first = text_of.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text_of[first] == '{';
}

Result<ProgramInput> open_json(const ByteSource& json, const ProgramInputOptions& input,
                               ProgramLayoutOptions layout_options) {
  ProgramJsonOptions options;
  options.folder = input.folder;
  options.schema = input.schema;
  std::optional<ProgramFile> segments_from;
  if (input.segments_from) {
    ETSTREAM_ASSIGN(segments_from, ProgramFile::open(*input.segments_from, {}, input.schema));
    options.segments_from = &*segments_from;
  }
  ETSTREAM_ASSIGN(const ProgramDescription described, read_program_json(json, options));
  if (!layout_options.vtables) layout_options.vtables = input.described_vtables;
  ETSTREAM_ASSIGN(Layout layout, plan(described, layout_options));
  ETSTREAM_ASSIGN(ByteSource planned, source_of(layout));
  ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(std::move(planned), json.name(), input.schema));
  return ProgramInput{std::move(program), std::move(layout), {}};
}

}  // namespace

Result<ProgramInput> open_program_input(const ByteSource& file, const ProgramInputOptions& options,
                                        const ProgramLayoutOptions& layout) {
  ETSTREAM_ASSIGN(const bool is_described, is_json(file));
  if (is_described) return open_json(file, options, layout);
  if (options.segments_from) {
    return make_error(ErrorCode::kInvalidArgument, file.name(),
                      ": is a program, which has its segments; only JSON takes those of another");
  }
  ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(file, {}, options.schema));
  return ProgramInput{std::move(program), std::nullopt, layout};
}

Result<ProgramPlan> plan(ProgramInput input, const ProgramChanges& changes) {
  if (input.layout && changes.empty()) return ProgramPlan{std::move(*input.layout), std::nullopt};
  return plan(input.program, changes, input.layout_options);
}

}  // namespace etstream
