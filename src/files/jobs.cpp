// SPDX-License-Identifier: BSD-3-Clause
#include "files/jobs.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/fat_container.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "etstream/program_description.h"

namespace etstream {
namespace {

Result<ProgramDescription> read_description(const ByteSource& json, const ProgramInputOptions& input) {
  ProgramJsonOptions options;
  options.folder = input.folder;
  options.schema = input.schema;
  std::optional<ProgramFile> segments_from;
  if (input.segments_from) {
    ETSTREAM_ASSIGN(segments_from, ProgramFile::open(*input.segments_from, {}, input.schema));
    options.segments_from = &*segments_from;
  }
  return read_program_json(json, options);
}

Result<void> verify(const ProgramFile& program, const RequireSound& require_sound) {
  Findings findings;
  ETSTREAM_TRY(program.verify(findings));
  return require_sound(findings);
}

Result<ProgramFile> open_sound(const ByteSource& file) {
  ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(file));
  Findings findings;
  ETSTREAM_TRY(program.verify(findings));
  if (findings.ok()) return program;
  return error_in(ErrorCode::kCorrupt, file.name(), "{}, the first: {}",
                  counted(findings.errors.size(), "error"), findings.errors.front().message);
}

Result<FilePlan> plan_container(const std::vector<SharingInput>& inputs,
                                const std::vector<FilePlan>& programs, std::uint32_t alignment) {
  FatContainer container{.payloads = {}, .alignment = alignment};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ETSTREAM_ASSIGN(ByteSource program, source_of(programs[i]));
    container.payloads.push_back({inputs[i].name, std::move(program)});
  }
  return plan(container);
}

}  // namespace

Result<ProgramPlan> plan_program_input(const ByteSource& file, const ProgramInputOptions& input,
                                       const ProgramChanges& changes, const ProgramPlanOptions& options,
                                       const RequireSound& require_sound) {
  ETSTREAM_ASSIGN(const bool is_described, begins_json_object(file));
  if (!is_described) {
    if (input.segments_from) {
      return error_in(ErrorCode::kInvalidArgument, file.name(),
                      "is a program, which has its segments; only JSON takes those of another");
    }
    ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file, {}, input.schema));
    ETSTREAM_TRY(verify(program, require_sound));
    return plan(program, changes, options);
  }
  ETSTREAM_ASSIGN(const ProgramDescription described, read_description(file, input));
  ProgramPlanOptions wanted = options;
  if (!wanted.vtables) wanted.vtables = input.described_vtables;
  ETSTREAM_ASSIGN(ProgramPlan planned, plan(described, changes, wanted));
  ETSTREAM_ASSIGN(ByteSource bytes, source_of(planned.program));
  ETSTREAM_ASSIGN(const auto program, ProgramFile::open(std::move(bytes), file.name(), input.schema));
  ETSTREAM_TRY(verify(program, require_sound));
  return planned;
}

Result<RenameRules> open_rename_rules(const std::string& name) {
  auto rules = RenameRules::ready_made(name);
  if (rules || rules.error().code != ErrorCode::kNotFound) return rules;
  const auto file = ByteSource::file(name);
  if (file) return RenameRules::read(*file);
  if (file.error().code != ErrorCode::kNotFound) return file.error();
  return make_error(ErrorCode::kNotFound, "{}; {}", file.error().message, rules.error().message);
}

Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs, const SharingOptions& options) {
  std::deque<ProgramFile> programs;
  SharedWeights description{.programs = {}, .least_size = options.least_size};
  for (const SharingInput& input : inputs) {
    ETSTREAM_ASSIGN(ProgramFile program, open_sound(input.program));
    description.programs.push_back(&programs.emplace_back(std::move(program)));
  }
  SharingPlan out;
  ETSTREAM_ASSIGN(out.files, plan(description));
  if (options.into_container) {
    ETSTREAM_ASSIGN(out.container, plan_container(inputs, out.files.programs, options.container_alignment));
  }
  return out;
}

Tolerance output_tolerance(std::optional<double> atol, std::optional<double> rtol) {
  constexpr double kMost = 1e18;
  Tolerance out;
  if (atol) {
    out.absolute = *atol;
    out.integer = static_cast<std::uint64_t>(std::min(*atol, kMost));
  }
  if (rtol) out.relative = *rtol;
  return out;
}

}  // namespace etstream
