// SPDX-License-Identifier: BSD-3-Clause
//
// The effects of holes on a plan: its extents, the memory that it takes, and the end of the file.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/layout/backward_builder.h"
#include "written_plan.h"

namespace etstream::testing::builder_holes_test {
namespace {

using Ref = BackwardBuilder::Ref;

constexpr std::uint64_t kLargestNumber = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kLargestFile = (std::uint64_t{1} << 31) - 1;

std::uint32_t read_u32(const FilePlan& plan, std::uint64_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes_of(plan, offset, sizeof(value)).data(), sizeof(value));
  return value;
}

Ref table_of(BackwardBuilder& builder, Ref child) {
  builder.begin_table();
  builder.add_ref(0, child);
  return builder.end_table();
}

/// Plans a file of one table with one vector of `size` zeros.
Result<FilePlan> file_of_zeros(std::uint64_t size, std::uint64_t limit) {
  BackwardBuilder builder;
  const Ref zeros = builder.add_vector(ByteSource::zeros(size), 1, 16, "zeros");
  return builder.finish(table_of(builder, zeros), "TEST", limit);
}

/// Returns the position of the vector that the root's only field refers to.
std::uint64_t find_vector(const FilePlan& plan) {
  const std::uint64_t root = read_u32(plan, 0);
  const std::uint64_t vtable = root - read_u32(plan, root);
  const std::uint64_t field = root + (read_u32(plan, vtable + 4) & 0xffff);
  return field + read_u32(plan, field);
}

std::uint64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<std::uint64_t>(usage.ru_maxrss);
#else
  return static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
#endif
}

TEST_CASE("long_padding_and_room_for_a_header_are_extents_of_zeros_and_take_no_memory") {
  const auto plan_with = [](std::uint32_t header_size) {
    BackwardBuilder builder;
    const Ref first = builder.add_vector(ByteSource::zeros(1), 1, 1 << 16, "first");
    const Ref second = builder.add_vector(ByteSource::zeros(1), 1, 1 << 16, "second");
    const Ref all = builder.add_vector(std::vector{first, second});
    return builder.finish(table_of(builder, all), "TEST", kLargestFile, header_size);
  };
  const auto plan = plan_with(0);
  REQUIRE(plan.has_value());
  CHECK(flaw_in(*plan) == "");
  CHECK(plan->size == 3 << 16);
  CHECK(plan->metadata_size < 1024);
  CHECK(bytes_of(*plan).size() == plan->size);
  const auto with_header = plan_with(24);
  REQUIRE(with_header.has_value());
  CHECK(with_header->size == 3 << 16);
  std::string labels;
  for (const Extent& extent : with_header->extents) {
    const std::string& label = with_header->label(extent);
    labels += label + " ";
    CHECK(extent.alignment == (label == "first" || label == "second" ? 1 << 16 : 1));
  }
  CHECK(labels == "metadata header padding metadata second padding metadata first padding metadata ");
  CHECK(with_header->extents[1].size() == 24);
}

TEST_CASE("a_hole_of_a_gibibyte_moves_the_offsets_and_takes_no_memory") {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 30;
  const std::uint64_t before = peak_memory();
  const auto plan = file_of_zeros(kSize, kLargestFile);
  REQUIRE(plan.has_value());
  CHECK(flaw_in(*plan) == "");
  CHECK(plan->size > kSize);
  CHECK(plan->payload_size == kSize);
  CHECK(plan->metadata_size < 1024);

  const std::uint64_t vector = find_vector(*plan);
  CHECK(read_u32(*plan, vector) == kSize);
  CHECK(plan->extents[1].offset == vector + 4);
  CHECK(plan->extents[1].size() == kSize);
  CHECK(peak_memory() - before < std::uint64_t{64} << 20);
}

TEST_CASE("sizes_over_two_to_the_64_are_refused") {
  const auto refused_at = [](const std::vector<std::uint64_t>& sizes) {
    BackwardBuilder builder;
    std::vector<Ref> all;
    for (const std::uint64_t size : sizes) {
      all.push_back(builder.add_vector(ByteSource::zeros(size), 1, 1, "zeros"));
    }
    const auto plan = builder.finish(table_of(builder, builder.add_vector(all)), "TEST", kLargestFile);
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().code == ErrorCode::kTooLarge);
    CHECK(plan.error().message ==
          "the file would be over 2^64 - 1 bytes, and its format ends at 2147483647 bytes");
  };
  refused_at({kLargestNumber});
  refused_at({kLargestNumber - 7});
  refused_at({std::uint64_t{1} << 63, std::uint64_t{1} << 63});
  refused_at({std::uint64_t{3} << 62, 100, std::uint64_t{3} << 62, 100});
}

TEST_CASE("what_an_offset_of_32_bits_can_not_span_is_refused_whatever_the_limit") {
  const auto plan = file_of_zeros(std::uint64_t{1} << 32, kLargestNumber);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code == ErrorCode::kTooLarge);
}

TEST_CASE("a_vtable_two_gibibytes_away_is_refused_whatever_the_limit") {
  // Its distance is a signed number of 32 bits.
  BackwardBuilder builder;
  const auto table = [&] {
    builder.begin_table();
    builder.add_scalar(0, 1, 8);
    builder.add_scalar(1, 1, 2);
    return builder.end_table();
  };
  table();
  const Ref zeros = builder.add_vector(ByteSource::zeros(std::uint64_t{1} << 31), 1, 8, "zeros");
  const auto all = builder.add_vector(std::vector{zeros, table()});
  const auto plan = builder.finish(table_of(builder, all), "TEST", kLargestNumber);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code == ErrorCode::kTooLarge);
}

/// Builds a file of one table with this many 8-byte scalars, behind a vtable that leaves 2 bytes of padding.
Result<FilePlan> file_of_scalars(std::uint16_t count) {
  BackwardBuilder builder;
  builder.begin_table();
  builder.add_scalar(0, 1, 4);
  builder.end_table();
  builder.begin_table();
  for (std::uint16_t i = 0; i < count; ++i) builder.add_scalar(i, i, 8);
  return builder.finish(builder.end_table(), "TEST", kLargestFile);
}

TEST_CASE("a_table_is_at_most_as_large_as_its_vtable_can_say") {
  // 4 bytes to the vtable, 8 a scalar, 2 of padding: 65534 is the largest.
  const auto largest = file_of_scalars(8191);
  REQUIRE(largest.has_value());
  const std::uint64_t root = read_u32(*largest, 0);
  const std::uint64_t vtable = root - read_u32(*largest, root);
  CHECK(read_u32(*largest, vtable) == ((65534U << 16) | (4 + 2 * 8191)));

  const auto refused = file_of_scalars(8192);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().message == "a table is larger than the 65535 bytes that it can have");
}

TEST_CASE("a_vtable_is_at_most_as_large_as_it_can_say_itself") {
  const auto file_with_id = [](std::uint16_t id) {
    BackwardBuilder builder;
    builder.begin_table();
    builder.add_scalar(id, 1, 1);
    return builder.finish(builder.end_table(), "TEST", kLargestFile);
  };
  const auto largest = file_with_id(32764);  // 2 entries and 32765 fields of 2 bytes: 65534
  REQUIRE(largest.has_value());
  const std::uint64_t root = read_u32(*largest, 0);
  const std::uint64_t vtable = root - read_u32(*largest, root);
  CHECK((read_u32(*largest, vtable) & 0xffff) == 65534);

  const auto refused = file_with_id(32765);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace etstream::testing::builder_holes_test
