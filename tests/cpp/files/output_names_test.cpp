// SPDX-License-Identifier: BSD-3-Clause
#include "files/output_names.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/text.h"

namespace etstream::output_names_test {
namespace {

/// Returns "LABEL/CASE/OUTPUT", with "-" for what the name lacks; "other" for a name that is none.
std::string read(const std::string& name) {
  const auto found = read_output_name(name);
  if (!found) return "other";
  return text("{}/{}/{}", found->label.empty() ? "-" : found->label,
              found->test_case ? std::to_string(*found->test_case) : "-", found->output);
}

TEST_CASE("the names that ExecuTorch's programs write are known") {
  CHECK(read("out-0.bin") == "-/-/0");
  CHECK(read("a-123456789.bin") == "-/-/123456789");
  CHECK(read("my-model_v2-12.bin") == "-/-/12");
  CHECK(read("output_3.bin") == "-/-/3");
  CHECK(read("0007.bin") == "-/-/7");
  CHECK(read("output_1_2.raw") == "-/1/2");
  CHECK(read("output_01_2.bin") == "-/1/2");
}

TEST_CASE("the names of write_test_cases() are known") {
  CHECK(read("forward_1_output_0.npy") == "forward/1/0");
  CHECK(read("a_1_output_0.raw") == "a/1/0");
  CHECK(read("output_1_output_0.bin") == "output/1/0");
  CHECK(read("suite-2_0_output_10.bin") == "suite-2/0/10");
  CHECK(read("a_1_output_2_3_output_4.bin") == "a_1_output_2/3/4");
}

TEST_CASE("other names are none") {
  for (const char* const name : {"",
                                 ".bin",
                                 "out.bin",
                                 "-0.bin",
                                 "out-0",
                                 "out-0.txt",
                                 "out-0.bin.part",
                                 "i0.bin",
                                 "_0.bin",
                                 "out_0.bin",
                                 "forward_1_input_0.npy",
                                 "output__0.bin",
                                 "output_a_0.bin",
                                 "output_1x0.bin",
                                 "output_1a_0.bin",
                                 "_1_output_0.bin",
                                 "1_output_0.bin",
                                 "forward_output_0.bin",
                                 "forward__output_0.bin",
                                 "out--.bin",
                                 "out-1234567890.bin",
                                 "output_1234567890_0.raw",
                                 "out-0 .bin"}) {
    CAPTURE(name);
    CHECK(read(name) == "other");
  }
}

TEST_CASE("a number has up to nine digits, and ends where its text does") {
  CHECK(read_number(std::string_view("1234").substr(1, 2)) == std::uint64_t{23});
  CHECK(read_number("999999999") == std::uint64_t{999'999'999});
  for (const char* const other : {"", "1234567890", "1a", "a1", "-1"}) CHECK_FALSE(read_number(other));
}

TEST_CASE("a series is what files of one run have in common, and an array has its own ending") {
  CHECK(read_output_name("out-0.bin")->series == read_output_name("out-1.npy")->series);
  CHECK(read_output_name("out-0.bin")->series != read_output_name("old-0.bin")->series);
  CHECK(read_output_name("out-1.npy")->is_array);
  CHECK(!read_output_name("out-1.raw")->is_array);
}

}  // namespace
}  // namespace etstream::output_names_test
