// SPDX-License-Identifier: BSD-3-Clause
#include "memory/profile/caller_watch.h"

#include <doctest/doctest.h>

namespace etstream::caller_watch_test {
namespace {

TEST_CASE("callers are read from what faulthandler wrote, whatever their names are") {
  const auto callers = read_stack(
      "Stack (most recent call first):\n"
      "  File \"/a \"b\", line 7 in x.py\", line 12 in <lambda>\n"
      "  File \"<frozen importlib._bootstrap>\", line 241 in _call_with_frames_removed\n"
      "  File \"/usr/lib/etstream/python/sitecustomize.py\", line 96 in exec_module\n"
      "  File \"<string>\", line ??? in f\n"
      "  File \n"
      "  ...\n"
      "  File \"cut");
  REQUIRE(callers.size() == 2);
  CHECK(callers[0].file == "/a \"b\", line 7 in x.py");
  CHECK(callers[0].line == 12);
  CHECK(callers[0].function == "<lambda>");
  CHECK(callers[1].file == "<string>");
  CHECK(callers[1].line == 0);
  CHECK(read_stack("").empty());
}

TEST_CASE("without one that can tell of its callers there is a note, and no jump") {
  Profile profile;
  CallerWatch watch;
  WatchedProcess seen;
  seen.process = 7;
  watch.take("B 7 7 1 0 0 0 0 0 0 0 1 export\nC 1 2\nC x 3 45\nC 999999999 3 45\nC 1 2 9\nC 1");
  watch.look({seen}, 1'000'000'000);
  watch.add_jumps(0, profile);
  CHECK(profile.jumps.empty());
  CHECK(profile.notes.size() == 1);
}

}  // namespace
}  // namespace etstream::caller_watch_test
