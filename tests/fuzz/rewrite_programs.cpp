// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any program that can be opened is written again: in another layout, without a method or stack
// traces, with its constants moved out and in, or shared with another. The last byte says which; the program
// is before it. The result is a program that fits.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "etstream/diff.h"
#include "etstream/program_plan.h"
#include "etstream/program_weights.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"
#include "etstream/verify.h"
#include "require.h"

namespace {

constexpr std::uint64_t kMostWritten = std::uint64_t{1} << 20;

/// Writes a plan and checks that the result is a program. Returns nothing if it is too large.
std::vector<std::byte> written(const etstream::FilePlan& plan) {
  std::vector<std::byte> out;
  if (plan.size > kMostWritten) return out;
  require(etstream::write(plan, *etstream::open_memory_sink(out)).has_value(), "a plan can be written");
  require(etstream::ProgramFile::open(etstream::ByteSource::memory(out)).has_value(),
          "what is written is a program");
  return out;
}

/// Checks that missing data is reported, and that a sound program that misses nothing fits the constants that
/// were moved out of it.
void check_pair(const etstream::ProgramFile& program, const etstream::ProgramFile& moved,
                const etstream::TensorDataFile& weights) {
  const auto keys = etstream::external_keys(program);
  const auto alone = etstream::verify(program, {});
  require(keys.has_value() == alone.has_value(), "what a program asks for can be told or can't");
  require(!keys || keys->empty() || !alone->ok(), "what is missing is said");
  const auto pair = etstream::verify(moved, {&weights});
  const bool has_weights = weights.entries().has_value() && !weights.entries()->empty();
  etstream::Findings found;
  const bool is_sound = program.verify(found).has_value() && found.ok() && alone && alone->ok();
  require(!is_sound || !has_weights || (pair && pair->ok()), "what was moved out fits");
  static_cast<void>(etstream::verify(program, {&weights}));
}

void change(const etstream::ProgramFile& program, const etstream::ProgramChanges& changes) {
  const auto planned = etstream::plan(program, changes, {.strict_alignment = true});
  if (!planned) return;
  const auto bytes = written(planned->program);
  const auto weights = planned->tensor_data ? etstream::plan(*planned->tensor_data) : etstream::FilePlan();
  if (bytes.empty() || !planned->tensor_data || !weights) return;
  const auto file = etstream::TensorDataFile::open(etstream::source_of(*weights).value());
  require(file.has_value(), "weights that are written can be read");
  const auto smaller = etstream::ProgramFile::open(etstream::ByteSource::memory(bytes));
  check_pair(program, *smaller, *file);
  const auto back = etstream::plan(*smaller, etstream::ProgramChanges{.constants_in = {&*file}});
  if (back) written(back->program);
}

void drop_first_method(const etstream::ProgramFile& program) {
  const auto methods = program.methods();
  if (methods && !methods->empty()) change(program, {.drop_methods = {methods->front().name}});
}

void lay_out(const etstream::ProgramFile& program, etstream::DelegateData delegates) {
  const auto plan = etstream::plan(program, {.segment_alignment = 64, .delegates = delegates});
  const auto again = plan ? written(*plan) : std::vector<std::byte>();
  if (again.empty()) return;
  if (const auto difference = etstream::diff(program.file(), etstream::ByteSource::memory(again))) {
    require(difference->same_bytes || !difference->differences.empty(), "what differs is said");
  }
}

/// Checks that two copies of a program share all weights that can be shared, and fit them as the program
/// fitted its own.
void share(const etstream::ProgramFile& program) {
  const auto planned =
      etstream::plan(etstream::SharedWeights{.programs = {&program, &program}, .least_size = 1});
  if (!planned) return;
  const auto bytes = written(planned->programs.front());
  if (bytes.empty() || !planned->weights) return;
  const auto weights = etstream::TensorDataFile::open(etstream::source_of(*planned->weights).value());
  require(weights.has_value(), "weights that are shared can be read");
  const auto smaller = etstream::ProgramFile::open(etstream::ByteSource::memory(bytes));
  const auto alone = etstream::verify(program, {});
  const auto pair = etstream::verify(*smaller, {&*weights});
  require(!alone || !alone->ok() || (pair && pair->ok()), "what is shared fits");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto program =
      etstream::ProgramFile::open(etstream::ByteSource::memory(std::as_bytes(std::span(data, size - 1))));
  if (!program) return 0;
  switch (data[size - 1] % 6) {
    case 0:
      lay_out(*program, etstream::DelegateData::kInline);
      break;
    case 1:
      lay_out(*program, etstream::DelegateData::kInSegments);
      break;
    case 2:
      drop_first_method(*program);
      break;
    case 3:
      change(*program, {.drop_stack_traces = true});
      break;
    case 4:
      change(*program, {.constants_out = etstream::ConstantsOut()});
      break;
    default:
      share(*program);
  }
  return 0;
}
