// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/sink.h"

#include <doctest/doctest.h>

#include "test_errors.h"

namespace etstream::writer_version_test {
namespace {

TEST_CASE("versions_of_executorch_belong_to_a_release") {
  CHECK(executorch_release("1.0").value() == ExecutorchRelease::k1_0);
  CHECK(executorch_release("1.3.1").value() == ExecutorchRelease::k1_3);
  CHECK(executorch_release("1.5.0rc2").value() == ExecutorchRelease::k1_5);
  CHECK(executorch_release("1.5.1+cpu").value() == kLatestRelease);
  CHECK(name_of(executorch_release("1.2.0").value()) == "1.2");
}

TEST_CASE("what_is_no_release_is_refused_by_name") {
  for (const char* wrong : {"", "1", "1.", "1.x", "0.7", "2.0", "1.6", "1.99999999999", "-1.2", "main"}) {
    CAPTURE(wrong);
    CHECK(error_of(executorch_release(wrong)) == containing("from 1.0 to 1.5, found"));
    CHECK(code_of(executorch_release(wrong)) == "kInvalidArgument");
  }
}

TEST_CASE("flatbuffers_shares_by_size_from_25_12_19_on") {
  for (const char* old : {"1.12", "2.0.7", "24.3.25", "25.2.10", "25.9.23", "25.12.18"}) {
    CAPTURE(old);
    CHECK(vtable_sharing(old).value() == VtableSharing::kOfAnySize);
  }
  for (const char* now : {"25.12.19", "25.12.19.1", "26.1", "100.0.0"}) {
    CAPTURE(now);
    CHECK(vtable_sharing(now).value() == VtableSharing::kOfEqualSize);
  }
  CHECK(code_of(vtable_sharing("latest")) == "kInvalidArgument");
}

}  // namespace
}  // namespace etstream::writer_version_test
