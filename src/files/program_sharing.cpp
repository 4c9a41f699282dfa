// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/program_sharing.h"

#include <list>
#include <utility>

#include "core/base/findings.h"
#include "core/base/try.h"
#include "etstream/fat_container.h"
#include "etstream/program.h"

namespace etstream {
namespace {

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

Result<SharingPlan> plan_sharing(const std::vector<SharingInput>& inputs, const SharingOptions& options) {
  return without_exceptions([&]() -> Result<SharingPlan> {
    std::list<ProgramFile> programs;
    SharedWeights description{.programs = {}, .least_size = options.least_size};
    for (const SharingInput& input : inputs) {
      ETSTREAM_ASSIGN(ProgramFile program, ProgramFile::open(input.program));
      ETSTREAM_TRY(require_sound(program));
      programs.push_back(std::move(program));
      description.programs.push_back(&programs.back());
    }
    SharingPlan out;
    ETSTREAM_ASSIGN(out.files, plan(description));
    if (options.into_container) {
      ETSTREAM_ASSIGN(out.container, plan_container(inputs, out.files.programs, options.container_alignment));
    }
    return out;
  });
}

}  // namespace etstream
