// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles that are read, or extracted as files, and bundled again to the same bytes.
#include <doctest/doctest.h>

#include <bit>
#include <filesystem>

#include "bundled_program_generated.h"
#include "etstream/bundled_program.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "golden_bundles.h"
#include "test_errors.h"

namespace etstream::read_and_extract_test {
namespace {

namespace bp = etstream::bundled_program;

BundledProgramFile opened(std::string bytes) {
  auto bundle = BundledProgramFile::open(file_of(std::move(bytes)));
  REQUIRE_MESSAGE(bundle, bundle.error().message);
  return std::move(bundle).value();
}

BundledProgram description_of(std::string bytes) {
  auto bundle = opened(std::move(bytes)).read();
  REQUIRE_MESSAGE(bundle, bundle.error().message);
  return std::move(bundle).value();
}

std::string bundled(const BundledProgram& bundle) {
  const auto layout = plan(bundle, {.unchecked = true});
  REQUIRE_MESSAGE(layout, layout.error().message);
  return written(*layout);
}

/// Returns a bundle of one case of one method.
std::string bundle_of(const std::string& method, std::vector<Value> inputs) {
  BundledProgram bundle;
  bundle.program = source_of("program");
  bundle.method_test_suites = {{method, {{std::move(inputs), {}}}}};
  return bundled(bundle);
}

Result<void> extract(const std::string& file, const std::string& folder) {
  return write_test_cases(opened(file), folder, {.sync = false});
}

/// Extracts `file` to a new folder, and bundles it again from there.
std::string extracted_and_bundled(const std::string& file) {
  const TemporaryFolder folder;
  const auto done = extract(file, folder / "cases");
  REQUIRE_MESSAGE(done, done.error().message);
  CHECK(folder.names() == std::vector<std::string>{"cases"});
  auto suites = read_test_cases(folder / "cases/cases.json");
  REQUIRE_MESSAGE(suites, suites.error().message);
  BundledProgram bundle = description_of(file);
  bundle.method_test_suites = std::move(suites).value();
  return bundled(bundle);
}

Tensor floats(std::vector<std::int32_t> sizes, std::vector<std::uint8_t> order, std::uint64_t bytes) {
  return {ScalarType::kFloat32, std::move(sizes), std::move(order), repeated('f', bytes)};
}

TEST_CASE("each golden bundle is read, and extracted, to what gives its bytes back") {
  REQUIRE(golden_folders().size() >= 6);
  for (const std::string& folder : golden_folders()) {
    CAPTURE(folder);
    const std::string file = content_of(folder + "/expected.bpte");
    CHECK((bundled(description_of(file)) == file));
    CHECK((extracted_and_bundled(file) == file));
  }
}

TEST_CASE(
    "a method of any name in UTF-8 without a zero byte is extracted, to files inside the folder, and comes "
    "back") {
  for (const std::string& name :
       {std::string("../x"), std::string("a/b"), std::string(), std::string("."), std::string("/etc/passwd"),
        std::string(300, 'n'), std::string("suite-1"), std::string("a\"b\\c\n\x01"),
        std::string("\xc3\xa9\xf0\x9f\x98\x80"), std::string("\xef\xbf\xbf")}) {
    CAPTURE(name);
    const std::string file = bundle_of(name, {floats({2}, {0}, 8), true});
    CHECK((extracted_and_bundled(file) == file));
    const TemporaryFolder folder;
    REQUIRE(extract(file, folder / "cases"));
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "cases")) {
      CHECK(entry.is_regular_file());
      ++files;
    }
    CHECK(files == 2);
  }
}

TEST_CASE("methods that come twice, out of order, or whose files would have one name are kept apart") {
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{"a", "a"},
                                             {"b", "a"},
                                             {"suite-1", "x/y"},
                                             {"a", "A"},
                                             {"a", "a_0"},
                                             {"", "", ""},
                                             {"a", "b", "a"},
                                             {"x", "y/", "suite-1"}}) {
    CAPTURE(names[0]);
    CAPTURE(names[1]);
    BundledProgram bundle;
    char content = 'a';
    for (const std::string& name : names) {
      const Tensor tensor{ScalarType::kUInt8, {3}, {0}, repeated(content++, 3)};
      bundle.method_test_suites.push_back({name, {{{tensor}, {}}, {{tensor, 1.0}, {tensor}}}});
    }
    const std::string file = bundled(bundle);
    CHECK((extracted_and_bundled(file) == file));
  }
}

TEST_CASE("every double comes back bit by bit") {
  std::vector<Value> doubles;
  for (const std::uint64_t bits :
       {0x7ff8000000000001ULL, 0x7ff8000000000000ULL, 0xfff8000000000000ULL, 0x7ff0000000000001ULL,
        0xffffffffffffffffULL, 0x7ff0000000000000ULL, 0xfff0000000000000ULL, 0x0000000000000001ULL,
        0x8000000000000001ULL, 0x000fffffffffffffULL, 0x7fefffffffffffffULL, 0x3fb999999999999aULL,
        0x4340000000000001ULL, 0x3ff0000000000000ULL, 0x44b52d02c7e14af6ULL}) {
    doubles.emplace_back(std::bit_cast<double>(bits));
  }
  const std::string file = bundle_of("forward", doubles);
  CHECK((extracted_and_bundled(file) == file));
  const auto read = description_of(file).method_test_suites[0].test_cases[0].inputs;
  REQUIRE(read.size() == doubles.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(std::bit_cast<std::uint64_t>(std::get<double>(read[i])) ==
          std::bit_cast<std::uint64_t>(std::get<double>(doubles[i])));
  }
}

TEST_CASE("what a JSON file can't say, or read_test_cases would refuse, is refused, and leaves no folder") {
  Tensor unknown = floats({2}, {0}, 2);
  unknown.scalar_type = static_cast<ScalarType>(9);
  const std::string first = "kUnsupported: bad: forward_0_input_0: ";
  struct Unsayable {
    std::string file, error;
  };
  for (const Unsayable& row : std::vector<Unsayable>{
           {bundle_of("\xff", {}), "kUnsupported: method name '\\xff' is not UTF-8, as JSON needs it"},
           {bundle_of("cut \xc3", {}),
            "kUnsupported: method name 'cut \\xc3' is not UTF-8, as JSON needs it"},
           {bundle_of("forward", {true, floats({2}, {0}, 7)}),
            "kUnsupported: bad: forward_0_input_1: a tensor of 7 bytes"},
           {bundle_of("forward", {floats({-2}, {0}, 8)}), first + "a tensor of 8 bytes"},
           {bundle_of("forward", {unknown}), first + "a tensor of 2 bytes"},
           {bundle_of("forward", {floats({2, 2}, {0, 0}, 16)}), first},
           {bundle_of("forward", {floats({2, 2}, {}, 16)}), first},
           {bundle_of("forward", {floats({2, 2}, {0, 1, 2}, 16)}), first},
       }) {
    CAPTURE(row.error);
    const TemporaryFolder folder;
    CHECK(error_of(extract(row.file, folder / "cases")) == containing(row.error));
    CHECK(folder.names().empty());
    std::filesystem::create_directory(folder / "empty");
    CHECK_FALSE(extract(row.file, folder / "empty").has_value());
    CHECK(folder.names().size() == 1);
    CHECK(std::filesystem::is_empty(folder / "empty"));
  }
}

TEST_CASE("an empty folder is filled, and a stop leaves it empty") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cases");
  const BundledProgramFile bundle = opened(real_bundle());
  int calls = 0;
  const auto stop = [&](std::uint64_t, std::uint64_t) { return ++calls < 3; };
  CHECK(code_of(write_test_cases(bundle, folder / "cases", {.sync = false}, stop)) == "kInterrupted");
  CHECK(calls == 3);
  CHECK(std::filesystem::is_empty(folder / "cases"));
  CHECK(folder.names() == std::vector<std::string>{"cases"});
  CHECK(write_test_cases(bundle, folder / "cases/"));
  CHECK(std::filesystem::exists(folder / "cases/cases.json"));
  CHECK(folder.names() == std::vector<std::string>{"cases"});
}

TEST_CASE("a test case that a suite has not is refused") {
  const BundledProgramFile bundle = opened(real_bundle());
  CHECK(error_of(bundle.test_case(bundle.suites()[0], 3)) ==
        exactly("kInvalidArgument: there is no test case 3 among the 3 of method 'count'"));
}

}  // namespace
}  // namespace etstream::read_and_extract_test
