// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/bundled_program.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "file_bytes.h"
#include "golden_bundles.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"

namespace etstream::bundled_program_test {
namespace {

constexpr std::uint64_t kLargestFile = (std::uint64_t{1} << 31) - 1;

Tensor tensor_of(ScalarType type, std::vector<std::int32_t> sizes, ByteSource data) {
  auto dim_order = contiguous_dim_order(sizes.size());
  return {type, std::move(sizes), std::move(dim_order), std::move(data)};
}

BundledProgram bundle_of(std::vector<Value> inputs, ByteSource program = ByteSource::zeros(100)) {
  return {.version = 2,
          .method_test_suites = {{"forward", {{.inputs = std::move(inputs), .expected_outputs = {}}}}},
          .program = std::move(program)};
}

/// Plans a bundle unchecked, as its program is zeros: bundled_program_check_test.cpp is about the checks.
Result<FilePlan> try_plan(const BundledProgram& bundle, std::uint32_t program_alignment = 32) {
  return plan(bundle, {.program_alignment = program_alignment, .unchecked = true});
}

FilePlan plan_of(const BundledProgram& bundle, std::uint32_t program_alignment = 32) {
  auto plan = try_plan(bundle, program_alignment);
  REQUIRE_MESSAGE(plan, plan.error().message);
  return std::move(plan).value();
}

TEST_CASE("a plan reads no payload") {
  const auto program = std::make_shared<RecordingStorage>(1 << 20);
  const auto data = std::make_shared<RecordingStorage>(1 << 20);
  const auto tensor = tensor_of(ScalarType::kUInt8, {1 << 20}, ByteSource(data));
  CHECK(plan_of(bundle_of({tensor}, ByteSource(program))).payload_size == 2 << 20);
  CHECK(program->read().empty());
  CHECK(data->read().empty());
}

TEST_CASE("a bundle of up to 2^31 - 1 bytes is planned in no memory, a larger one is refused") {
  const auto plan_for = [](std::uint64_t size) { return try_plan(bundle_of({}, ByteSource::zeros(size))); };
  std::uint64_t fits = 8;
  std::uint64_t too_large = kLargestFile;
  while (too_large - fits > 1) {
    const std::uint64_t middle = fits + (too_large - fits) / 2;
    (plan_for(middle) ? fits : too_large) = middle;
  }
  const auto largest = plan_for(fits);
  REQUIRE(largest);
  CHECK(largest->size <= kLargestFile);
  CHECK(largest->size > kLargestFile - 64);
  CHECK(largest->metadata_size < 1000);
  CHECK(largest->memory() < 2 << 20);
  CHECK(error_of(plan_for(too_large)) == containing("its format ends at 2147483647 bytes"));
}

TEST_CASE("a bundle that is too large is refused whatever makes it so, and the error has the sizes") {
  const auto program = try_plan(bundle_of({}, ByteSource::zeros(std::uint64_t{1} << 31)));
  CHECK(error_of(program) == containing("kTooLarge: "));
  CHECK(error_of(program) == containing("the file would be 2147483"));
  CHECK(error_of(program) == containing("a program of 2147483648 bytes"));
  CHECK(code_of(try_plan(bundle_of({}, ByteSource::zeros(UINT64_MAX)))) == "kTooLarge");
  const auto half = tensor_of(ScalarType::kFloat32, {1 << 28}, ByteSource::zeros(std::uint64_t{1} << 30));
  CHECK(try_plan(bundle_of({half})));
  CHECK(code_of(try_plan(bundle_of({half, half}))) == "kTooLarge");
}

TEST_CASE("bundles have the bytes that ExecuTorch writes") {
  const std::vector<std::string> folders = golden_folders();
  CHECK(folders.size() >= 3);
  for (const std::string& folder : folders) {
    CAPTURE(folder);
    const std::string found = written(plan_of(read_golden(folder)));
    const std::string expected = content_of(folder + "/expected.bpte");
    CHECK(found.size() == expected.size());
    const auto difference = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
    CHECK_MESSAGE((found == expected), "first difference at byte ", difference.first - found.begin());
  }
}

}  // namespace
}  // namespace etstream::bundled_program_test
