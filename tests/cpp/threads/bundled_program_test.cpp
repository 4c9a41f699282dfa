// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <thread>

#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "test_paths.h"

namespace etstream::bundled_program_test {
namespace {

/// Returns all that can be read in a bundle, as text to compare.
std::string all_of(const BundledProgramFile& bundle) {
  std::string out;
  const auto add = [&out](const auto& result, auto&& text) {
    out += result ? text(*result) : result.error().message;
  };
  const auto bytes_of_source = [](const ByteSource& source) {
    std::string bytes(source.size(), '\0');
    const auto read = source.read_at(0, std::as_writable_bytes(std::span(bytes)));
    return read ? bytes : read.error().message;
  };
  const auto add_values = [&](const std::vector<Value>& values) {
    for (const Value& value : values) {
      out += std::to_string(value.index());
      if (const auto* tensor = std::get_if<Tensor>(&value)) out += bytes_of_source(tensor->data);
    }
  };
  for (const auto& suite : bundle.suites()) {
    out += suite.method_name;
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      const auto test_case = bundle.test_case(suite, i);
      if (!test_case) return test_case.error().message;
      add_values(test_case->inputs);
      add_values(test_case->expected_outputs);
    }
  }
  out += bytes_of_source(bundle.program());
  add(bundle.open_program(), [](const ProgramFile& program) {
    const auto methods = program.methods();
    return methods ? methods->at(0).name : methods.error().message;
  });
  add(inspect(bundle.file()), [](const FileInspection& inspection) {
    std::string parts;
    for (const FilePart& part : inspection.parts) parts += part.path + std::to_string(part.offset) + "\n";
    return parts;
  });
  Findings findings;
  const auto verified = bundle.verify(findings);
  return out +
         (verified ? lines_of(findings.errors) + lines_of(findings.warnings) : verified.error().message);
}

TEST_CASE("one open bundle is read by eight threads at once, and each reads what one alone does") {
  auto file = ByteSource::file(kGoldenDir + "/sorted_suites_of_a_real_program/expected.bpte");
  REQUIRE(file);
  const auto bundle = BundledProgramFile::open(*file);
  REQUIRE(bundle);
  const std::string expected = all_of(*bundle);
  REQUIRE(expected.size() > bundle->program().size());
  std::vector<std::string> found(8);
  std::vector<std::thread> threads;
  for (std::string& mine : found) {
    threads.emplace_back([&mine, &bundle, &expected] {
      for (int i = 0; i < 20 && (i == 0 || mine == expected); ++i) mine = all_of(*bundle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& mine : found) CHECK((mine == expected));
}

}  // namespace
}  // namespace etstream::bundled_program_test
