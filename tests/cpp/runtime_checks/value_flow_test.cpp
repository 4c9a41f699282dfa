// SPDX-License-Identifier: BSD-3-Clause
#include "runtime_checks/value_flow.h"

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

TEST_CASE("a calculation with what may be anything gives anything, and one that can't be made nothing") {
  ValueFlow flow({kAnything, kinds(kInt), kinds(kTensor)});
  flow.begin_instruction();
  flow.calculate(0, 1, 1);
  flow.begin_instruction();
  flow.set(1, kinds(kInt));
  flow.begin_instruction();
  flow.calculate(2, 2, 2);
  flow.follow();
  CHECK(flow.go_to(1));
  CHECK(flow.kinds_of(1) == kAnything);
  CHECK(flow.go_to(3));
  CHECK(flow.kinds_of(2) == 0);
}

TEST_CASE("a method of too many ways has anything in what it changes") {
  constexpr std::uint32_t kMany = 1000;
  ValueFlow flow(std::vector<Kinds>(kMany + 1, kinds(kInt)));
  for (std::uint32_t i = 0; i < kMany; ++i) {
    flow.begin_instruction();
    flow.set(i, kinds(kDouble));
    flow.jump(i, std::nullopt);
  }
  flow.follow();
  CHECK(flow.go_to(kMany));
  CHECK(flow.kinds_of(0) == kAnything);
  CHECK(flow.kinds_of(kMany) == kinds(kInt));
}

}  // namespace
}  // namespace etstream
