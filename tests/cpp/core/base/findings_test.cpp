// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/findings.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/text.h"
#include "etstream/byte_source.h"
#include "test_errors.h"

namespace etstream::findings_test {
namespace {

Findings with_errors(int count) {
  Findings out;
  for (int i = 0; i < count; ++i) out.errors.emplace_back(error_in(ErrorCode::kCorrupt, "f", "is {}", i));
  return out;
}

TEST_CASE("a file is refused with its first errors, and how to see all") {
  Findings sound;
  sound.warnings.emplace_back("f: is odd");
  CHECK(error_of(require_sound("f", sound)) == "no error");
  CHECK(error_of(require_sound("f", with_errors(1))) == "kCorrupt: f: is 0");
  CHECK(error_of(require_sound("f", with_errors(3))) == "kCorrupt: f: is 0; f: is 1; f: is 2");
  CHECK(error_of(require_sound("f", with_errors(5))) ==
        "kCorrupt: f: is 0; f: is 1; f: is 2; and 2 more errors; verify() lists all");
}

TEST_CASE("an error that names no file is said to be about the one that is refused") {
  Findings findings;
  findings.errors.emplace_back("method 'forward': is missing");
  const auto refused = require_sound("f", findings);
  CHECK(error_of(refused) == "kCorrupt: f: method 'forward': is missing");
  CHECK(refused.error().file == "f");
}

TEST_CASE("the advice of an only error stays") {
  Findings findings;
  findings.errors.emplace_back(
      with_advice(error_at(ErrorCode::kCorrupt, {"f", 8}, "is empty"), {"get it again"}));
  const auto refused = require_sound("g", findings);
  CHECK(error_of(refused) == "kCorrupt: f: offset 8: is empty; get it again");
  CHECK(refused.error().file == "f");
  CHECK(refused.error().offset == 8);
  CHECK(refused.error().system_code == 0);
}

TEST_CASE("no more than 100 findings of each kind are kept, and each name once") {
  Findings findings;
  add_unknown_operator(findings, "b");
  for (int i = 0; i < 101; ++i) {
    add_error(findings, make_error(ErrorCode::kCorrupt, "{}", i));
    add_warning(findings, make_error(ErrorCode::kCorrupt, "{}", i));
    add_unknown_operator(findings, text("a{:03}", i));
    if (i < 3) add_unknown_operator(findings, "b");
  }
  CHECK(findings.errors.size() == 100);
  CHECK(findings.errors.back().message == "99");
  CHECK(findings.warnings.size() == 100);
  CHECK(findings.warnings.back().message == "99");
  CHECK(findings.unknown_operators == 105);
  REQUIRE(findings.unknown_operator_names.size() == 100);
  CHECK(findings.unknown_operator_names.front() == "a000");
  CHECK(findings.unknown_operator_names[98] == "a098");
  CHECK(findings.unknown_operator_names[99] == "b");
}

TEST_CASE("a corrupt file is a finding, and another error ends a check") {
  Findings findings;
  CHECK(error_of(note_corrupt({}, findings)) == "no error");
  CHECK(error_of(note_corrupt(Error{ErrorCode::kIo, "gone"}, findings)) == "kIo: gone");
  CHECK(findings.errors.empty());
  CHECK(error_of(note_corrupt(Error{ErrorCode::kCorrupt, "bad"}, findings)) == "no error");
  CHECK(findings.errors.size() == 1);
}

/// A file whose check finds `findings`.
struct CheckedFile {
  Findings findings;
  [[nodiscard]] static ByteSource file() { return ByteSource::zeros(1); }
  [[nodiscard]] Result<void> verify(Findings& out) const {
    out = findings;
    return {};
  }
};

TEST_CASE("a file is verified before it is used, and its warnings are told") {
  CheckedFile file;
  file.findings.warnings.emplace_back("f: is odd");
  std::string told;
  CHECK(require_sound(file, [&](const Finding& warning) { told += warning.message; }));
  CHECK(told == "f: is odd");
  file.findings.errors.emplace_back("is bad");
  CHECK(error_of(require_sound(file)) == "kCorrupt: zeros: is bad");
}

}  // namespace
}  // namespace etstream::findings_test
