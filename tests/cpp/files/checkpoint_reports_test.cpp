// SPDX-License-Identifier: BSD-3-Clause
//
// The reports of diff() and find_duplicates() on checkpoints: safetensors and GGUF files.
#include <doctest/doctest.h>

#include "diffs.h"
#include "etstream/diff.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_tensor_files.h"

namespace etstream::checkpoint_reports_test {
namespace {

std::string real_gguf() { return content_of(kGoldenDir + "/gguf/expected.gguf"); }

/// Makes two tensors of equal bytes and one of the same size with others.
std::string three_tensors(std::string_view data = "abcdABCDabcd") {
  return safetensors_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                          R"("c":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}})",
                          data);
}

TEST_CASE("checkpoints are compared by name, type, shape and bytes") {
  CHECK(diff_of(three_tensors(), three_tensors()).same_bytes);
  const std::string other = safetensors_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                             R"("d":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                                             R"("c":{"dtype":"I32","shape":[1,1],"data_offsets":[8,12]}})",
                                             "abcXABCDabcd");
  const FileDiff found = diff_of(three_tensors(), other);
  CHECK_FALSE(found.same_content);
  CHECK(lines_of(found) ==
        "content 'a': float32 [1], 4 bytes, which differ from byte 3 on | float32 [1], 4 bytes\n"
        "layout 'a': at 169 | at 171\n"
        "content 'b': float32 [1] | \n"
        "content 'c': int32 [1] | int32 [1, 1]\n"
        "layout 'c': at 177 | at 179\n"
        "content 'd':  | float32 [1]\n");
}

TEST_CASE("a header that says the same in other words is another layout") {
  const std::string other =
      safetensors_file(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}  })", "x");
  const std::string one = safetensors_file(R"({"a":{"shape":[1],"dtype":"I8","data_offsets":[0,1]}  })", "x");
  const FileDiff found = diff_of(one, other);
  CHECK(found.same_content);
  CHECK_FALSE(found.same_bytes);
  REQUIRE(found.differences.size() == 1);
  CHECK(found.differences[0].subject == "file");
}

TEST_CASE("what differs between two GGUF files is told, metadata too") {
  std::string changed = real_gguf();
  changed.replace(changed.find("etstream.uint8"), 14, "etstream.UINT8");
  changed[changed.size() - 64] = static_cast<char>(changed[changed.size() - 64] ^ 1);  // in the last tensor
  const FileDiff found = diff_of(real_gguf(), changed);
  CHECK_FALSE(found.same_content);
  REQUIRE(found.differences.size() == 2);
  CHECK(found.differences[0].subject == "metadata");
  CHECK(found.differences[1].subject == "'cube'");
  std::string renamed = real_gguf();
  renamed.replace(renamed.find("blocks.Q4_0"), 11, "BLOCKS.Q4_0");
  CHECK(lines_of(diff_of(real_gguf(), renamed)) ==
        "content 'BLOCKS.Q4_0':  | Q4_0 [2, 64]\ncontent 'blocks.Q4_0': Q4_0 [2, 64] | \n");
}

TEST_CASE("a checkpoint and a program are of two kinds") {
  CHECK(error_of(diff(file_of(real_program()), file_of(real_gguf()))) ==
        containing("expected two files of one kind, found bad, program (ET12), and bad, GGUF"));
  CHECK(error_of(diff(file_of(three_tensors()), file_of(real_bundle()))) ==
        containing("found bad, safetensors, and bad, bundled program (BP08)"));
}

}  // namespace
}  // namespace etstream::checkpoint_reports_test
