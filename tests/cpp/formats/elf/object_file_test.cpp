// SPDX-License-Identifier: BSD-3-Clause
#include "formats/elf/object_file.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "file_bytes.h"

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

}  // namespace
}  // namespace etstream::object_file_test
