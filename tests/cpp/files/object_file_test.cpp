// SPDX-License-Identifier: BSD-3-Clause
#include "files/object_file.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "file_bytes.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::object_file_test {
namespace {

std::string object_for(ObjectTarget target) {
  const auto planned = elf::plan({.data = source_of("abc"),
                                  .symbol = "model",
                                  .section = ".rodata.model",
                                  .alignment = 16,
                                  .target = target});
  REQUIRE_MESSAGE(planned, planned.error().message);
  return written(*planned);
}

struct Target {
  ObjectTarget target;
  bool has_64_bits;
  std::uint16_t machine;
  std::uint32_t flags;
  bool has_stack_note;
};

TEST_CASE("an object file has the numbers of its processor, and a note about the stack but for Cortex-M") {
  for (const Target& each : {Target{ObjectTarget::kArm, false, 40, 0x05000000, false},
                             Target{ObjectTarget::kAarch64, true, 183, 0, true},
                             Target{ObjectTarget::kRiscv32, false, 243, 0, true},
                             Target{ObjectTarget::kRiscv64, true, 243, 4, true},
                             Target{ObjectTarget::kAmd64, true, 62, 0, true}}) {
    CAPTURE(each.machine);
    CAPTURE(each.has_64_bits);
    const std::string object = object_for(each.target);
    CHECK(object.substr(0, 7) == std::string("\x7f"
                                             "ELF") +
                                     (each.has_64_bits ? "\2" : "\1") + "\1\1");
    CHECK(get_at<std::uint16_t>(object, 16) == 1);  // relocatable
    CHECK(get_at<std::uint16_t>(object, 18) == each.machine);
    CHECK(get_at<std::uint32_t>(object, each.has_64_bits ? 48 : 36) == each.flags);
    CHECK(get_at<std::uint16_t>(object, each.has_64_bits ? 52 : 40) == (each.has_64_bits ? 64 : 52));
    const auto sections = get_at<std::uint16_t>(object, each.has_64_bits ? 60 : 48);
    CHECK(sections == (each.has_stack_note ? 5 : 4));
    CHECK((object.find(".note.GNU-stack") != std::string::npos) == each.has_stack_note);
  }
}

/// Returns the numbers at `at`: of a byte, a half, a word or an address for each letter.
std::string numbers(const std::string& object, std::uint64_t at, std::string_view letters) {
  const std::size_t address = object[4] == 1 ? 4 : 8;
  std::string out;
  for (const char letter : letters) {
    const std::size_t size = letter == 'b' ? 1 : letter == 'h' ? 2 : letter == 'w' ? 4 : address;
    std::uint64_t value = 0;
    std::memcpy(&value, object.data() + at, size);
    out += (out.empty() ? "" : " ") + std::to_string(value);
    at += size;
  }
  return out + "\n";
}

TEST_CASE("data in an object file lies at its alignment, up to that of a page") {
  for (const std::uint32_t alignment : {8U, 64U, 2048U, 4096U, 8192U, 65536U}) {
    CAPTURE(alignment);
    const auto planned =
        elf::plan({.data = source_of("abc"), .symbol = "s", .section = "t", .alignment = alignment});
    REQUIRE_MESSAGE(planned, planned.error().message);
    for (const Extent& each : planned->extents) CHECK(each.alignment == 1);
    const std::string object = written(*planned);
    CHECK(object.find("abc") == std::clamp(alignment, 56U, 4096U));
  }
}

TEST_CASE("an object file for 32 bits has less than 4 GiB, and one for 64 bits may have more") {
  const auto sized = [](ObjectTarget target, std::uint64_t size) {
    return elf::plan({.data = repeated('x', size),
                      .symbol = "model",
                      .section = ".rodata.model",
                      .alignment = 16,
                      .target = target});
  };
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 32;
  for (const ObjectTarget target : {ObjectTarget::kArm, ObjectTarget::kRiscv32}) {
    const std::uint64_t others = object_for(target).size() - 8;  // its data takes 8 bytes
    const auto largest = sized(target, kLimit - 8 - others);
    REQUIRE_MESSAGE(largest, largest.error().message);
    CHECK(largest->size == kLimit - 8);
    CHECK(error_of(sized(target, kLimit - 8 - others + 1)) ==
          exactly("kTooLarge: fill: is too large: an object file for 32 bits has up to 4 GiB, and this would "
                  "have 4294967296 bytes"));
  }
  CHECK(sized(ObjectTarget::kAarch64, kLimit));
}

TEST_CASE(
    "the plan of an object file tells the bytes of its data, which a section aligns to a word at least") {
  const auto planned = elf::plan({.data = source_of("abc"), .symbol = "s", .section = "t", .alignment = 2});
  REQUIRE_MESSAGE(planned, planned.error().message);
  CHECK(planned->payload_size == 3);
  CHECK(planned->metadata_size == planned->size - 3);
  const std::string object = written(*planned);
  CHECK(object.find("abc") == 56);
  CHECK(numbers(object, get_at<std::uint32_t>(object, 32) + 40, "wwaaaawwaa") == "16 1 2 0 56 12 0 0 8 0\n");
}

}  // namespace
}  // namespace etstream::object_file_test
