// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/inspect.h"

#include <doctest/doctest.h>

#include <string>

#include "etstream/bundled_program.h"
#include "etstream/fat_container.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "files/origins/made_program.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::memory_alignment_test {
namespace {

ByteSource example() { return ByteSource::file(kExamplesDir + "/model.pte").value(); }

ByteSource file_of(const Result<FilePlan>& planned) {
  REQUIRE_MESSAGE(planned, planned.error().message);
  return source_of(*planned).value();
}

/// The example, laid out again.
ByteSource program(const ProgramPlanOptions& options) {
  const auto opened = ProgramFile::open(example());
  REQUIRE_MESSAGE(opened, opened.error().message);
  return file_of(plan(*opened, options));
}

std::uint64_t alignment_of(const ByteSource& file) {
  const auto alignment = memory_alignment(file);
  REQUIRE_MESSAGE(alignment, alignment.error().message);
  return *alignment;
}

ByteSource bundle(ByteSource model, std::uint32_t alignment) {
  BundledProgram described;
  described.program = std::move(model);
  return file_of(plan(described, {.program_alignment = alignment}));
}

TEST_CASE("a program needs what its segments lie at multiples of, one alone at most ExecuTorch's 128") {
  CHECK(alignment_of(example()) == 128);
  CHECK(alignment_of(program({.segment_alignment = 64})) == 64);
  CHECK(alignment_of(program({.segment_alignment = 4})) == 16);
  CHECK(alignment_of(program({.segment_alignment = 4096})) == 128);
}

TEST_CASE("a program needs what its header is padded for") {
  CHECK(alignment_of(program({.constant_tensor_alignment = 512})) == 512);
  CHECK(alignment_of(program({.constant_tensor_alignment = 128})) == 128);
}

TEST_CASE("tensor data needs what its segments do, unless they are empty") {
  for (const std::size_t size : {0U, 1U, 2U}) {
    CAPTURE(size);
    const std::string data = made::tensor_data(
        {{std::string(size, 'a'), {static_cast<std::int32_t>(size)}, "a", ScalarType::kUInt8}});
    CHECK(alignment_of(source_of(data)) == (size == 0 ? 16 : 128));
  }
}

TEST_CASE("a bundle needs what its program does, as far as the program's offset allows it") {
  CHECK(alignment_of(bundle(example(), 16)) == 16);
  CHECK(alignment_of(bundle(example(), 128)) == 128);
  CHECK(alignment_of(bundle(example(), 4096)) == 128);
}

TEST_CASE("a fat container needs what its payloads do, as far as their offsets allow it") {
  const auto container = [](std::uint32_t alignment) {
    FatContainer described;
    described.payloads = {{"text", source_of("abc")}, {"program", example()}};
    described.alignment = alignment;
    return alignment_of(file_of(plan(described)));
  };
  CHECK(container(1) == 16);
  CHECK(container(64) == 64);
  CHECK(container(4096) == 128);
  FatContainer inner;
  inner.payloads = {{"program", example()}};
  inner.alignment = 4096;
  FatContainer outer;
  outer.payloads = {{"inner", file_of(plan(inner))}};
  outer.alignment = 4096;
  CHECK(alignment_of(file_of(plan(outer))) == 16);
}

TEST_CASE("another file needs 16, and a damaged one is refused") {
  CHECK(alignment_of(source_of("abc")) == 16);
  const auto half = example().slice(0, 11000);
  REQUIRE(half);
  CHECK(error_of(memory_alignment(*half)) == containing("kCorrupt"));
}

TEST_CASE("inspect tells it of files that the runtime loads") {
  const auto program = inspect(example());
  REQUIRE_MESSAGE(program, program.error().message);
  CHECK(program->memory_alignment == std::uint64_t{128});
  const auto checkpoint = inspect(source_of(std::string("\x02\0\0\0\0\0\0\0{}", 10)));
  REQUIRE_MESSAGE(checkpoint, checkpoint.error().message);
  CHECK(!checkpoint->memory_alignment);
}

}  // namespace
}  // namespace etstream::memory_alignment_test
