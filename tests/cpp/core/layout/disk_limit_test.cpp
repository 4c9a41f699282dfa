// SPDX-License-Identifier: BSD-3-Clause
//
// Output that is much larger than its sources needs permission, and no other output does.
#include "etstream/sink.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/io/file_budget.h"
#include "core/layout/file_plan.h"
#include "formats/tensor/converted_floats.h"
#include "formats/tensor/strided_source.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::disk_limit_test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

ByteSource file_of(std::uint64_t size) { return ByteSource(std::make_shared<RecordingStorage>(size)); }

FilePlan plan_of(const std::vector<ByteSource>& sources) {
  FilePlan out;
  for (const ByteSource& source : sources) REQUIRE(append(out, 1, "payload", source));
  return out;
}

Result<void> check(const std::vector<FilePlan>& plans, std::optional<std::uint64_t> max_disk = {}) {
  std::vector<const FilePlan*> pointers;
  for (const FilePlan& plan : plans) pointers.push_back(&plan);
  return check_disk(pointers, max_disk);
}

TEST_CASE("an output of over 4 times its input and 1 MiB is refused, with its size, until that is allowed") {
  const ByteSource file = file_of(4 * kMiB);
  const FilePlan plan = plan_of(std::vector<ByteSource>(24, file));
  CHECK(
      error_of(check({plan})) ==
      containing("kTooLarge: recording: expected output of at most 4 times the 4.0 MiB that it is made from, "
                 "where names share data, found 96.0 MiB (100663296 bytes); max_disk 96M allows it"));
  CHECK(check({plan}, 96 * kMiB));
  CHECK(
      error_of(check({plan}, 96 * kMiB - 1)) ==
      containing("writing takes 96.0 MiB (100663296 bytes) of the disk, over the limit of 96.0 MiB; max_disk "
                 "96M would fit"));
}

TEST_CASE("an input counts whole, and 1 MiB is free") {
  const ByteSource file = file_of(4 * kMiB);
  const ByteSource half = file.slice(0, 2 * kMiB).value();
  const ByteSource byte = file.slice(0, 1).value();
  std::vector<ByteSource> sources(8, half);
  sources.push_back(file.slice(0, kMiB).value());
  CHECK(check({plan_of(sources)}));
  sources.push_back(byte);
  CHECK(code_of(check({plan_of(sources)})) == "kTooLarge");
}

TEST_CASE("what several outputs take from one input counts together") {
  const FilePlan plan = plan_of(std::vector<ByteSource>(3, file_of(4 * kMiB)));
  CHECK(check({plan}));
  CHECK(code_of(check({plan, plan})) == "kTooLarge");
}

TEST_CASE("inputs of their own, and zeros, may be as large as they are") {
  std::vector<ByteSource> sources;
  for (int i = 0; i < 24; ++i) sources.push_back(file_of(4 * kMiB));
  CHECK(check({plan_of(sources)}));
  CHECK(check({plan_of({file_of(1), ByteSource::zeros(1000 * kMiB)})}));
  CHECK(check({plan_of({})}));
  CHECK(check({}));
}

TEST_CASE("what is made from an input counts as bytes of it, however often it is converted or joined") {
  const ByteSource file = file_of(4 * kMiB);
  std::vector<ByteSource> sources;
  for (int i = 0; i < 3; ++i) {
    auto converted = convert_floats(file, ScalarType::kFloat16, ScalarType::kFloat32);
    REQUIRE(converted);
    sources.push_back(ByteSource::concatenation({*std::move(converted), file.slice(0, 8).value()}).value());
  }
  CHECK(error_of(check({plan_of(sources)})) == containing("at most 4 times the 4.0 MiB"));
  sources.resize(2);
  CHECK(check({plan_of(sources)}));
}

TEST_CASE("elements that repeat count as the bytes that they are gathered from") {
  const auto repeated = [](std::uint64_t count) {
    return gather(file_of(4), {.item_size = 4, .sizes = {count}, .strides = {0}}).value();
  };
  CHECK(check({plan_of({repeated(kMiB / 4)})}));
  CHECK(error_of(check({plan_of({repeated(kMiB / 2)})})) == containing("at most 4 times the 4 bytes"));
}

TEST_CASE("objects of a file are reached, and its payloads spent, 4 times on average, and 1 MiB is free") {
  FileBudget budget("file", 10, 1000);
  CHECK(budget.reach(0, 39));
  CHECK(budget.reach(8, 1));
  CHECK(error_of(budget.reach(16, 1)) ==
        "kCorrupt: file: offset 16: expected objects that are shared at most 4 times on average, found more "
        "sharing");
  CHECK(budget.spend(kMiB + 3999));
  CHECK(budget.spend(1));
  CHECK(error_of(budget.spend(1)) ==
        "kTooLarge: file: expected payloads that share 1000 bytes at most 4 times on average, found more");
}

}  // namespace
}  // namespace etstream::disk_limit_test
