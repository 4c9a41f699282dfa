// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/flatbuffer_text.h"
#include "test_paths.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace etstream::flatbuffer_text_test {
namespace {

TEST_CASE("many threads compile and decompile with one schema, also where JSON is wrong") {
  const auto schema = FlatbufferText::open(kSchemaDir + "/bundled_program.fbs");
  REQUIRE_MESSAGE(schema, schema.error().message);
  constexpr int kThreads = 8;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string version = std::to_string(thread + 1);
      const std::string json = R"({"version": )" + version + R"(, "program": [1, 2, 3]})";
      const auto expected = schema->compile(json);
      for (int i = 0; i < 50; ++i) {
        const auto flatbuffer = schema->compile(json);
        if (!flatbuffer || !expected || *flatbuffer != *expected || schema->compile("{ nothing")) continue;
        const auto text = schema->decompile(*flatbuffer);
        right += text && text->find("\"version\": " + version + ",") != std::string::npos ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * 50);
}

}  // namespace
}  // namespace etstream::flatbuffer_text_test
