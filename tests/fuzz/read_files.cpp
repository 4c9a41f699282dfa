// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a program, a bundle, tensor data or a fat container. Whatever they are, they are
// read without a fault, and what is accepted, FlatBuffers' own verifier accepts too.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "bundled_program_generated.h"
#include "etstream/bundled_program_file.h"
#include "etstream/diff.h"
#include "etstream/duplicates.h"
#include "etstream/inspect.h"
#include "etstream/program_changes.h"
#include "etstream/program_plan.h"
#include "etstream/program_weights.h"
#include "etstream/shared_weights.h"
#include "etstream/tensor_data_file.h"
#include "etstream/verify.h"
#include "etstream/write.h"
#include "flat_tensor_generated.h"
#include "program_generated.h"

namespace {

constexpr std::uint64_t kMostWritten = std::uint64_t{1} << 20;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::abort();
}

template <class Verify>
bool flatbuffers_accepts(std::span<const std::uint8_t> bytes, Verify verify) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  return verify(verifier);
}

/// A plan can be written, and what is written is a program, which is returned; none where it is too large.
std::vector<std::byte> written(const etstream::FilePlan& plan) {
  std::vector<std::byte> out;
  if (plan.size > kMostWritten) return out;
  require(etstream::write(plan, *etstream::open_memory_sink(out)).has_value(), "a plan can be written");
  require(etstream::ProgramFile::open(etstream::ByteSource::memory(out)).has_value(),
          "what is written is a program");
  return out;
}

/// What is missing is said, and a program that misses nothing fits the constants that were moved out of it.
void check_pair(const etstream::ProgramFile& program, const etstream::ProgramFile& moved,
                const etstream::TensorDataFile& weights) {
  const auto keys = etstream::external_keys(program);
  const auto alone = etstream::verify(program, {});
  require(keys.has_value() == alone.has_value(), "what a program asks for can be told or can't");
  require(!keys || keys->empty() || !alone->ok(), "what is missing is said");
  const auto pair = etstream::verify(moved, {&weights});
  const bool has_weights = weights.entries().has_value() && !weights.entries()->empty();
  require(!alone || !alone->ok() || !has_weights || (pair && pair->ok()), "what was moved out fits");
  static_cast<void>(etstream::verify(program, {&weights}));
}

void change(const etstream::ProgramFile& program) {
  const auto methods = program.methods();
  const std::string first = methods && !methods->empty() ? methods->front().name : "";
  for (const etstream::ProgramChanges& changes :
       {etstream::ProgramChanges{.drop_methods = {first}},
        etstream::ProgramChanges{.drop_stack_traces = true},
        etstream::ProgramChanges{.constants_out = etstream::ConstantsOut()}}) {
    const auto planned = etstream::plan(program, changes, {.strict_alignment = true});
    if (!planned) continue;
    const auto bytes = written(planned->program);
    const auto weights = planned->tensor_data ? etstream::plan(*planned->tensor_data) : etstream::FilePlan();
    if (bytes.empty() || !planned->tensor_data || !weights) continue;
    const auto file = etstream::TensorDataFile::open(etstream::source_of(*weights).value());
    require(file.has_value(), "weights that are written can be read");
    const auto smaller = etstream::ProgramFile::open(etstream::ByteSource::memory(bytes));
    check_pair(program, *smaller, *file);
    const auto back = etstream::plan(*smaller, etstream::ProgramChanges{.constants_in = {&*file}});
    if (back) written(back->program);
  }
}

/// Two of a program share all weights that can be shared, and fit them as the program fitted its own.
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
  const std::span bytes(data, size);
  const auto file = etstream::ByteSource::memory(std::as_bytes(bytes));
  const auto findings = etstream::verify(file);
  const auto inspection = etstream::inspect(file);
  if (findings && findings->ok()) {
    // But for what has so many lists that they are not followed.
    const bool is_large = !inspection && inspection.error().code == etstream::ErrorCode::kTooLarge;
    require(inspection || is_large, "what verifies can be inspected");
  }
  if (const auto difference = etstream::diff(file, file)) {
    require(difference->same_bytes, "a file is the same as itself");
  }
  static_cast<void>(etstream::find_duplicates(file));
  if (const auto program = etstream::ProgramFile::open(file)) {
    require(flatbuffers_accepts(bytes.first(static_cast<std::size_t>(program->flatbuffer_size())),
                                [](auto& v) { return etstream::program::VerifyProgramBuffer(v); }),
            "a program that is accepted is one for FlatBuffers");
    for (const auto delegates : {etstream::DelegateData::kInline, etstream::DelegateData::kInSegments}) {
      const auto plan = etstream::plan(*program, {.segment_alignment = 64, .delegates = delegates});
      const auto again = plan ? written(*plan) : std::vector<std::byte>();
      if (again.empty()) continue;
      if (const auto difference = etstream::diff(file, etstream::ByteSource::memory(again))) {
        require(difference->same_bytes || !difference->differences.empty(), "what differs is said");
      }
    }
    change(*program);
    share(*program);
  }
  if (const auto bundle = etstream::BundledProgramFile::open(file)) {
    const bool is_bp08 = bundle->format() == etstream::BundleFormat::kBp08;
    require(!is_bp08 ||
                flatbuffers_accepts(
                    bytes, [](auto& v) { return etstream::bundled_program::VerifyBundledProgramBuffer(v); }),
            "a bundle that is accepted is one for FlatBuffers");
    const auto read = bundle->read();
    require(!findings->ok() || read.has_value(), "what verifies can be read");
  }
  if (const auto weights = etstream::TensorDataFile::open(file)) {
    require(flatbuffers_accepts(bytes.first(static_cast<std::size_t>(weights->flatbuffer_size())),
                                [](auto& v) { return etstream::flat_tensor::VerifyFlatTensorBuffer(v); }),
            "tensor data that is accepted is some for FlatBuffers");
    require(!findings->ok() || weights->entries().has_value(), "what verifies can be listed");
  }
  return 0;
}
