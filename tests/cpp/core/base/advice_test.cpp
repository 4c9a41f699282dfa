// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/advice.h"

#include <doctest/doctest.h>

#include "core/base/text.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream::advice_test {
namespace {

std::string_view shouted(AdviceTerm term) { return term == AdviceTerm::kHeadDim ? "HEAD DIM" : "OTHER"; }

TEST_CASE("each interface has its own words in advice") {
  const Error error = with_advice(Error{ErrorCode::kNotFound, "there is none"},
                                  {"give ", AdviceTerm::kHeadDim, " or ", AdviceTerm::kPartial});
  CHECK(full_message(error) == "there is none; give head_dim or partial");
  CHECK(full_message(error, shouted) == "there is none; give HEAD DIM or OTHER");
  CHECK(full_message(Finding(error), shouted) == full_message(error, shouted));
  CHECK(error.message == "there is none");
}

TEST_CASE("a message without advice stays as it is, whatever words it has") {
  CHECK(full_message(Error{ErrorCode::kNotFound, "x; head_dim.pte: is empty"}, shouted) ==
        "x; head_dim.pte: is empty");
  CHECK(full_message("x; head_dim.pte", {"get partial again"}, shouted) ==
        "x; head_dim.pte; get partial again");
}

TEST_CASE("an error that is about a place keeps its advice") {
  const Error error = with_advice(Error{ErrorCode::kCorrupt, "is empty"}, {"get it again"});
  CHECK(full_message(about(error, "a.json", "line 1")) == "a.json: line 1: is empty; get it again");
}

}  // namespace
}  // namespace etstream::advice_test
