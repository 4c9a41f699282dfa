// SPDX-License-Identifier: BSD-3-Clause
//
// Two outputs that would be one file, by whatever names.
#include "etstream/sink.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "etstream/byte_source.h"
#include "test_errors.h"
#include "test_files.h"

namespace etstream::output_places_test {
namespace {

/// Makes a folder the current one while it lives.
class CurrentFolder {
 public:
  explicit CurrentFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~CurrentFolder() { std::filesystem::current_path(before_); }

 private:
  const std::filesystem::path before_;
};

bool are_one(const std::string& first, const std::string& second) {
  OutputPlaces places;
  REQUIRE(places.add(first));
  return code_of(places.add(second)) == "kInvalidArgument";
}

TEST_CASE("two spellings of a new file are one output") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  std::filesystem::create_symlink("in", folder / "link");
  std::filesystem::create_symlink("x", folder / "dangling");
  std::filesystem::create_symlink(folder / "in/x", folder / "absolute");
  const CurrentFolder current(folder / "");
  CHECK(are_one("x", "./x"));
  CHECK(are_one("x", folder / "x"));
  CHECK(are_one("in/../x", "x"));
  CHECK(are_one("in/x", "link/x"));
  CHECK(are_one("dangling", "x"));
  CHECK(are_one("absolute", "link/./x"));
  CHECK(are_one("new/a/x", folder / "new/./a/b/../x"));
  CHECK_FALSE(are_one("x", "in/x"));
  CHECK_FALSE(are_one("new/x", "x"));
  CHECK(are_one("x", "./X"));
  CHECK(are_one("new/A/x", "new/a/x"));
  const std::string long_name(300, 'n');
  CHECK_FALSE(are_one(long_name + "1", long_name + "2"));
  OutputPlaces places;
  REQUIRE(places.add("x"));
  CHECK(error_of(places.add("./x")) ==
        exactly(
            "kInvalidArgument: two outputs are to be one file, 'x' and './x'; give each a name of its own"));
  CHECK(error_of(places.add("./X")) ==
        exactly("kInvalidArgument: two outputs are to be 'x' and './X', which are one file where capital "
                "letters do not count; give each a name of its own"));
  CHECK(error_of(places.add("x")) ==
        exactly("kInvalidArgument: two outputs are to be 'x'; give each a name of its own"));
}

TEST_CASE("two names of one file are two outputs, as each name gets a file of its own") {
  const TemporaryFolder folder;
  put_file(folder / "a", "x");
  std::filesystem::create_hard_link(folder / "a", folder / "b");
  CHECK_FALSE(are_one(folder / "a", folder / "b"));
}

TEST_CASE("a file that is written in place is no other output") {
  const TemporaryFolder folder;
  put_file(folder / "a", "x");
  const auto file = identity_of(folder / "a");
  REQUIRE(file);
  OutputPlaces path_first;
  REQUIRE(path_first.add(folder / "a"));
  CHECK(code_of(path_first.add(*file, "descriptor 3")) == "kInvalidArgument");
  OutputPlaces path_last;
  REQUIRE(path_last.add(*file, "descriptor 3"));
  CHECK(code_of(path_last.add(folder / "a")) == "kInvalidArgument");
  CHECK(code_of(path_last.add(*file, "descriptor 4")) == "kInvalidArgument");
  CHECK(path_last.add(folder / "b"));
}

}  // namespace
}  // namespace etstream::output_places_test
