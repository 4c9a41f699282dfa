// SPDX-License-Identifier: BSD-3-Clause
#include "runtime_checks/method_flow.h"

#include <doctest/doctest.h>

namespace etstream {
namespace {

constexpr std::uint32_t kA = 0;
constexpr std::uint32_t kB = 1;
constexpr std::uint32_t kC = 2;

using enum pte::ValueKind;

ValueFlow flow_of(const std::vector<pte::ValueKind>& held) {
  std::vector<Kinds> start;
  for (const pte::ValueKind each : held) start.push_back(kinds(each));
  return ValueFlow(std::move(start));
}

TEST_CASE("a value holds what was put there last, and from the second run on what the run before left") {
  ValueFlow flow = flow_of({kInt, kTensor, kBool});
  flow.begin_instruction();
  flow.copy(kA, kB);
  flow.begin_instruction();
  flow.set(kA, kinds(kBool));
  flow.follow();
  CHECK(flow.go_to(0));
  CHECK(flow.kinds_of(kA) == kinds(kInt, kBool));
  CHECK(flow.kinds_of(kB) == kinds(kTensor, kInt, kBool));
  CHECK(flow.kinds_of(kC) == kinds(kBool));
  CHECK(flow.go_to(1));
  CHECK(flow.kinds_of(kB) == kinds(kInt, kBool));
  CHECK(flow.go_to(2));
  CHECK(flow.kinds_of(kA) == kinds(kBool));
  CHECK(flow.is_changed(kB));
  CHECK_FALSE(flow.is_changed(kC));
}

TEST_CASE("a run begins anew with its inputs") {
  ValueFlow flow = flow_of({kInt});
  flow.renew(kA);
  flow.begin_instruction();
  flow.set(kA, kinds(kTensor));
  flow.follow();
  CHECK(flow.go_to(0));
  CHECK(flow.kinds_of(kA) == kinds(kInt));
}

TEST_CASE("both ways from a jump meet where it leads, and nothing goes on behind one that is always made") {
  for (const bool is_always : {false, true}) {
    CAPTURE(is_always);
    ValueFlow flow = flow_of({kInt, kBool});
    flow.begin_instruction();
    flow.jump(2, is_always ? std::optional(kB) : std::nullopt);
    flow.begin_instruction();
    flow.set(kA, kinds(kDouble));
    flow.begin_instruction();
    flow.set(kA, kinds(kInt));
    flow.follow();
    CHECK(flow.go_to(1) == !is_always);
    CHECK(flow.go_to(2));
    CHECK(flow.kinds_of(kA) == (is_always ? kinds(kInt) : kinds(kInt, kDouble)));
  }
}

TEST_CASE("a condition that is changed decides anew each time") {
  ValueFlow flow = flow_of({kBool});
  flow.begin_instruction();
  flow.jump(2, kA);
  flow.begin_instruction();
  flow.set(kA, kinds(kBool));
  flow.follow();
  CHECK(flow.go_to(1));
}

TEST_CASE("what is made in a loop comes back to its beginning") {
  ValueFlow flow = flow_of({kInt, kDouble, kInt});
  flow.begin_instruction();
  flow.calculate(kC, kC, kA);
  flow.begin_instruction();
  flow.calculate(kA, kB, kC);
  flow.begin_instruction();
  flow.jump(0, std::nullopt);
  flow.begin_instruction();
  flow.choose(kA, kC, kB);
  flow.follow();
  CHECK(flow.go_to(0));
  CHECK(flow.kinds_of(kC) == kinds(kInt, kDouble));
  CHECK(flow.go_to(1));
  CHECK(flow.kinds_of(kA) == kinds(kInt, kDouble));
  CHECK(flow.go_to(4));
  CHECK(flow.kinds_of(kB) == kinds(kInt, kDouble));
}

TEST_CASE("an instruction that jumps to itself is followed until it brings nothing new") {
  ValueFlow flow = flow_of({kInt, kBool});
  flow.renew(kA);
  flow.renew(kB);
  flow.begin_instruction();
  flow.begin_instruction();
  flow.copy(kA, kB);
  flow.set(kA, kinds(kDouble));
  flow.jump(1, std::nullopt);
  flow.follow();
  CHECK(flow.go_to(0));
  CHECK(flow.kinds_of(kA) == kinds(kInt));
  CHECK(flow.go_to(1));
  CHECK(flow.kinds_of(kA) == kinds(kInt, kDouble));
  CHECK(flow.kinds_of(kB) == kinds(kInt, kDouble, kBool));
}

TEST_CASE("what takes up to 7 passes to come to its place is followed there") {
  for (const std::uint32_t passes : {7U, 8U}) {
    std::vector<Kinds> start(passes + 1, kinds(kInt));
    start.back() = kinds(kDouble);
    ValueFlow flow(std::move(start));
    for (std::uint32_t i = 0; i < passes; ++i) {
      flow.begin_instruction();
      flow.copy(i + 1, i);
    }
    flow.follow();
    CHECK(flow.go_to(0));
    CHECK(flow.kinds_of(0) == (passes == 7 ? kinds(kInt, kDouble) : kAnything));
  }
}

TEST_CASE("a calculation with what may be anything gives anything, and one that can't be made nothing") {
  ValueFlow flow({kAnything, kinds(kInt), kinds(kTensor), kinds(kInt), kinds(kInt)});
  flow.begin_instruction();
  flow.calculate(0, 1, 1);
  flow.begin_instruction();
  flow.set(1, kinds(kInt));
  flow.begin_instruction();
  flow.calculate(2, 2, 2);
  flow.begin_instruction();
  flow.set(1, kinds(kDouble));
  flow.calculate(1, 2, 3);
  flow.calculate(2, 1, 4);
  flow.follow();
  CHECK(flow.go_to(1));
  CHECK(flow.kinds_of(1) == kAnything);
  CHECK(flow.go_to(3));
  CHECK(flow.kinds_of(2) == 0);
  CHECK(flow.go_to(4));
  CHECK(flow.kinds_of(3) == 0);
  CHECK(flow.kinds_of(4) == 0);
}

TEST_CASE("a method of too many ways has anything in what it changes") {
  // 32 places with 31 values are 16 for each instruction and value; 33 with 32 are more.
  for (const bool is_followed : {true, false}) {
    CAPTURE(is_followed);
    const std::uint32_t count = is_followed ? 31 : 32;
    ValueFlow flow(std::vector<Kinds>(is_followed ? 31 : 33, kinds(kInt)));
    for (std::uint32_t i = 0; i < count; ++i) {
      flow.begin_instruction();
      flow.set(i, kinds(kDouble));
      flow.jump(i, std::nullopt);
    }
    flow.follow();
    CHECK(flow.go_to(count));
    CHECK(flow.kinds_of(0) == (is_followed ? kinds(kDouble) : kAnything));
    if (!is_followed) CHECK(flow.kinds_of(count) == kinds(kInt));
  }
}

}  // namespace
}  // namespace etstream
