// SPDX-License-Identifier: BSD-3-Clause
#include "cli/words.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace etstream::words_test {
namespace {

using cli::nearest;

const std::vector<std::string> kNames = {"bundle", "compile", "convert", "decompile", "diff", "fat",
                                         "pack",   "ptd",     "pte",     "ptn",       "run",  "verify"};

TEST_CASE("a word with a letter left out, added, changed or swapped is the name that is meant") {
  for (const char* const word : {"verfy", "veriffy", "verifi", "vreify", "verify"}) {
    CAPTURE(word);
    CHECK(nearest(word, kNames) == "verify");
  }
  CHECK(nearest("bundel", kNames) == "bundle");
  CHECK(nearest("pakc", kNames) == "pack");
  CHECK(nearest("dif", kNames) == "diff");
  CHECK(nearest("apck", kNames) == "pack");
  CHECK(nearest("runn", kNames) == "run");
  CHECK(nearest("fa", kNames) == "fat");
  CHECK(nearest("vreifi", kNames) == "verify");
}

TEST_CASE("of several names the nearest is meant, and of equally near ones the first") {
  CHECK(nearest("ptx", kNames) == "ptd");
  CHECK(nearest("compil", kNames) == "compile");
  CHECK(nearest("decompil", kNames) == "decompile");
}

TEST_CASE("a word that is like no name means none") {
  for (const char* const word : {"", "x", "t", "xx", "fxx", "xakc", "help", "xyzzy", "model.pte"}) {
    CAPTURE(word);
    CHECK(nearest(word, kNames).empty());
  }
  CHECK(nearest(std::string(64, 'a'), {std::string(64, 'a')}) == std::string(64, 'a'));
  CHECK(nearest(std::string(65, 'a'), {std::string(65, 'a')}).empty());
  CHECK(nearest("a", {"b"}).empty());
}

}  // namespace
}  // namespace etstream::words_test
