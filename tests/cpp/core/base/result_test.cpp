// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/result.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/text.h"
#include "test_errors.h"

namespace etstream::result_test {
namespace {

const Error kError{ErrorCode::kTooLarge, "too large by half"};

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd"};
  return n / 2;
}

Result<std::unique_ptr<int>> owned(int n) {
  if (n < 0) return Error{ErrorCode::kInvalidArgument, "negative"};
  return std::make_unique<int>(n);
}

Result<void> refuse_zero(int n) {
  if (n == 0) return Error{ErrorCode::kInvalidArgument, "zero"};
  return {};
}

struct Death {
  int signal = 0;
  std::string last_words;
};

/// Returns how a process that runs `body` ends, and what it prints on standard error.
template <class F>
Death death_of(F&& body) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    body();
    ::_exit(0);
  }
  ::close(pipe[1]);
  Death death;
  std::array<char, 256> buffer{};
  for (ssize_t n = 0; (n = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    death.last_words.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  return death;
}

/// Counts its living objects.
struct Counted {
  Counted() { ++alive; }
  Counted(const Counted& /*other*/) { ++alive; }
  ~Counted() { --alive; }
  static inline int alive = 0;
};

Result<std::vector<Counted>> counted(std::size_t n) { return std::vector<Counted>(n); }

TEST_CASE("a_loop_over_the_value_of_a_temporary_is_over_what_lives") {
  int seen = 0;
  for ([[maybe_unused]] const Counted& one : counted(3).value()) {
    CHECK(Counted::alive == 3);
    ++seen;
  }
  CHECK(seen == 3);
  CHECK(Counted::alive == 0);
}

TEST_CASE("a result holds a value") {
  Result<std::string> result = std::string("layout");
  REQUIRE(result.has_value());
  CHECK(static_cast<bool>(result));
  CHECK(result.value() == "layout");
  CHECK(*result == "layout");
  CHECK(result->size() == 6);
  result.value() += "s";
  CHECK(std::as_const(result).value() == "layouts");
  CHECK(*std::as_const(result) == "layouts");
  CHECK(std::as_const(result)->size() == 7);
}

TEST_CASE("a result holds an error") {
  const Result<std::string> result = kError;
  REQUIRE_FALSE(result.has_value());
  CHECK_FALSE(static_cast<bool>(result));
  CHECK(result.error().code == ErrorCode::kTooLarge);
  CHECK(result.error().message == "too large by half");
}

TEST_CASE("a result without a value, or of false, is a success unless it is given an error") {
  CHECK(Result<bool>(false).has_value());
  CHECK(Result<void>().has_value());
  const Result<void> failed = kError;
  REQUIRE_FALSE(failed);
  CHECK(error_of(failed) == "kTooLarge: too large by half");
}

TEST_CASE("a result gives away what can only be moved") {
  Result<std::unique_ptr<int>> first = owned(7);
  const std::unique_ptr<int> taken = std::move(first).value();
  CHECK(*taken == 7);
  Result<std::unique_ptr<int>> second = owned(8);
  const std::unique_ptr<int> also_taken = *std::move(second);
  CHECK(*also_taken == 8);
}

TEST_CASE("and_then goes on with a value, or without one, and stops at the first error") {
  CHECK(half(12).and_then(half).value() == 3);
  CHECK(error_of(half(6).and_then(half)) == "kInvalidArgument: odd");
  CHECK(refuse_zero(1).and_then([] { return half(8); }).value() == 4);
  CHECK(error_of(half(0).and_then(refuse_zero)) == "kInvalidArgument: zero");
  CHECK(half(2).and_then(refuse_zero));
  bool called = false;
  const auto stopped = half(5).and_then([&](int n) {
    called = true;
    return half(n);
  });
  CHECK(error_of(stopped) == "kInvalidArgument: odd");
  CHECK_FALSE(called);
}

TEST_CASE("and_then hands over what can only be moved") {
  const auto unwrap = [](std::unique_ptr<int> owned) -> Result<int> { return *owned; };
  CHECK(owned(9).and_then(unwrap).value() == 9);
  CHECK(error_of(owned(-9).and_then(unwrap)) == "kInvalidArgument: negative");
}

TEST_CASE("reading the value of a failed result ends the program and says why") {
  const Death death = death_of([] { static_cast<void>(Result<int>(kError).value()); });
  CHECK(death.signal == SIGABRT);
  CHECK(exactly(death.last_words) == containing("etstream: value() of a failed Result: too large by half\n"));
  CHECK(death_of([] { static_cast<void>(*Result<std::string>(kError)); }).signal == SIGABRT);
  CHECK(death_of([] { static_cast<void>(Result<std::string>(kError)->size()); }).signal == SIGABRT);
}

TEST_CASE("reading the error of a good result ends the program") {
  const Death death = death_of([] { static_cast<void>(half(2).error()); });
  CHECK(death.signal == SIGABRT);
  CHECK(exactly(death.last_words) == containing("error() of a Result that holds a value"));
}

// A result does not turn into a number or a bool by itself.
static_assert(!std::is_convertible_v<Result<int>, bool>);
static_assert(!std::is_convertible_v<Result<bool>, bool>);
static_assert(std::is_constructible_v<bool, Result<int>>);

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

}  // namespace etstream::result_test
