// SPDX-License-Identifier: BSD-3-Clause
//
// BackwardBuilder against FlatBuffers' own builders. A sequence is written once, as a template, and run on
// both; ours runs it once with the vectors' bytes at hand and once with holes in their place.
#include "core/layout/backward_builder.h"

#include <doctest/doctest.h>

#include <bit>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "reference_builder.h"
#include "written_plan.h"

namespace etstream::testing::backward_builder_test {
namespace {

constexpr std::uint64_t kNoLimit = (std::uint64_t{1} << 31) - 1;

/// BackwardBuilder that makes a hole of every scalar vector.
class HoleBuilder : public BackwardBuilder {
 public:
  using BackwardBuilder::add_vector;
  Ref add_vector(std::span<const std::byte> elements, std::uint32_t element_size, std::uint32_t alignment) {
    return BackwardBuilder::add_vector(ByteSource::owned({elements.begin(), elements.end()}), element_size,
                                       alignment, "payload");
  }
};

template <class Builder, class Sequence>
std::vector<std::byte> built(Sequence sequence) {
  Builder builder;
  const auto layout = builder.finish(sequence(builder), "TEST", kNoLimit);
  if (!layout) {
    FAIL_CHECK(layout.error().message);
    return {};
  }
  CHECK(flaw_in(*layout) == "");
  return bytes_of(*layout);
}

template <class Sequence>
std::vector<std::byte> built_by_reference(Sequence sequence) {
  ReferenceBuilder builder;
  const auto root = sequence(builder);
  return builder.finish(root, "TEST");
}

template <class Sequence>
void check_same(Sequence sequence) {
  const auto expected = built_by_reference(sequence);
  CHECK(difference(built<BackwardBuilder>(sequence), expected) == "");
  CHECK(difference(built<HoleBuilder>(sequence), expected) == "");
}

std::vector<std::byte> numbered_bytes(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

/// Adds a table with one reference.
template <class Builder>
auto table_of(Builder& builder, typename Builder::Ref child) {
  builder.begin_table();
  builder.add_ref(0, child);
  return builder.end_table();
}

/// Adds a table with one 32-bit scalar: behind what was placed before, it may need padding.
template <class Builder>
auto padded_table(Builder& builder) {
  builder.begin_table();
  builder.add_scalar(0, 7, 4);
  return builder.end_table();
}

/// Builds an object of every kind; python_builder_golden.py does the same.
template <class Builder>
auto everything(Builder& builder) {
  const auto name = builder.add_string("etstream");
  const auto empty_doubles = builder.add_vector(std::span<const std::byte>(), 8, 8);
  const auto bytes = builder.add_vector(numbered_bytes(3), 1, 16);
  const auto empty_aligned = builder.add_vector(std::span<const std::byte>(), 1, 64);
  const auto shorts = builder.add_vector(numbered_bytes(6), 2, 2);
  const std::vector children = {padded_table(builder), padded_table(builder), padded_table(builder)};
  const auto tables = builder.add_vector(children);
  builder.begin_table();
  builder.add_ref(0, name);
  builder.add_scalar(1, 0x11, 1);
  builder.add_scalar(2, 0x2222, 2);
  builder.add_ref(3, empty_doubles);
  builder.add_scalar(5, 0x5555555555555555, 8);
  builder.add_ref(6, bytes);
  builder.add_scalar(7, std::bit_cast<std::uint32_t>(1.5F), 4);
  builder.add_ref(8, empty_aligned);
  builder.add_ref(9, shorts);
  builder.add_ref(10, tables);
  return builder.end_table();
}

std::string hex(const std::vector<std::byte>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[static_cast<unsigned>(byte) >> 4];
    out += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return out;
}

TEST_CASE("a_file_of_everything_is_that_of_the_python_builder") {
  // python_builder_golden.py prints these with flatbuffers 25.12.19.
  const std::string_view expected =
      "480000005445535400000000000000000000000000000000000000000000000000000000000000000000000000001a00"
      "30002c002b002800240000001800140010000c00080004001a0000002c00000060000000680000000000c03f80000000"
      "55555555555555550000000080000000222200117c000000030000002c0000001800000004000000f6ffffff07000000"
      "000006000a0004000600000007000000000006000800040006000000070000000300000001080f161d24000000000000"
      "000000000000000000000000000000000000000000000000000000000300000001080f00000000000000000000000000"
      "08000000657473747265616d00000000";
  CHECK(hex(built<BackwardBuilder>(everything<BackwardBuilder>)) == expected);
  CHECK(hex(built<HoleBuilder>(everything<HoleBuilder>)) == expected);
  CHECK(hex(built_by_reference(everything<ReferenceBuilder>)) == expected);
}

TEST_CASE("scalar_vectors_of_any_width_count_and_alignment_are_those_of_flatbuffers") {
  for (std::uint32_t width = 1; width <= 8; width *= 2) {
    for (std::uint32_t alignment = width; alignment <= (1U << 16); alignment *= 2) {
      for (std::size_t count = 0; count < 10; ++count) {
        CAPTURE(width);
        CAPTURE(alignment);
        CAPTURE(count);
        check_same([&](auto& builder) {
          const auto before = builder.add_string("x");
          const auto vector = builder.add_vector(numbered_bytes(count * width), width, alignment);
          return table_of(builder, builder.add_vector(std::vector{before, vector}));
        });
      }
    }
  }
}

TEST_CASE("table_fields_of_all_widths_are_padded_as_flatbuffers_pads_them_in_any_order") {
  constexpr unsigned kWidths[] = {1, 2, 4, 8};
  for (unsigned order = 0; order < 256; ++order) {
    CAPTURE(order);
    check_same([&](auto& builder) {
      const auto child = builder.add_string("child");
      builder.begin_table();
      for (unsigned i = 0; i < 4; ++i) {
        builder.add_scalar(static_cast<std::uint16_t>(2 * i), 0x0102030405060708,
                           kWidths[order >> 2 * i & 3]);
      }
      builder.add_ref(7, child);
      return builder.end_table();
    });
  }
}

TEST_CASE("a_vtable_is_shared_with_tables_of_any_size_where_that_is_asked_for") {
  BackwardBuilder builder(BackwardBuilder::EmptyVectors::kAligned, VtableSharing::kOfAnySize);
  const auto size_of_table = [&] {
    const std::uint64_t before = builder.size();
    padded_table(builder);
    return builder.size() - before;
  };
  CHECK(size_of_table() == 8 + 6);
  CHECK(size_of_table() == 2 + 8);  // the first one's vtable, which says 8
  builder.begin_table();
  builder.add_scalar(0, 1, 1);
  const std::uint64_t before = builder.size();
  builder.end_table();
  CHECK(builder.size() - before > 8);  // fields that lie otherwise take a vtable of their own
}

TEST_CASE("objects_that_cross_the_blocks_of_memory_are_whole") {
  for (const std::size_t size : {65530U, 65531U, 65532U, 65535U, 65536U, 65537U, 131072U, 200001U}) {
    CAPTURE(size);
    check_same([&](auto& builder) {
      const auto string = builder.add_string(std::string(size, 's'));
      const auto bytes = builder.add_vector(numbered_bytes(size), 1, 64);
      std::vector<typename std::remove_reference_t<decltype(builder)>::Ref> children = {string, bytes};
      for (int i = 0; i < 3000; ++i) children.push_back(builder.add_string(text("number {}", i)));
      for (int i = 0; i < 3000; ++i) children.push_back(padded_table(builder));
      return table_of(builder, builder.add_vector(children));
    });
  }
}

}  // namespace
}  // namespace etstream::testing::backward_builder_test
