// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles with one thing wrong, each with the whole message that it must give.
#include <doctest/doctest.h>

#include <functional>

#include "bundled_program_generated.h"
#include "core/base/text.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "test_errors.h"

namespace etstream::bad_files_test {
namespace {

namespace bp = etstream::bundled_program;

/// The places of objects in the real bundle.
struct Places {
  explicit Places(const std::string& file) {
    const auto* bundle = bp::GetBundledProgram(file.data());
    const auto* suite = bundle->method_test_suites()->Get(0);
    const auto* input = suite->test_cases()->Get(0)->inputs()->Get(0);
    root = position_of(file, bundle);
    suites = position_of(file, bundle->method_test_suites());
    program = position_of(file, bundle->program());
    method_name = position_of(file, suite->method_name());
    value = position_of(file, input);
    sizes = position_of(file, input->val_as_Tensor()->sizes());
  }
  std::size_t root, suites, program, method_name, value, sizes;
};

struct Row {
  std::string promise;
  /// Damages the file and returns the expected error, after the file's name.
  std::function<std::string(std::string&, const Places&)> spoil;
};

std::string at(std::size_t offset, const std::string& expected, const std::string& found) {
  return text("offset {}: expected {}, found {}", offset, expected, found);
}

void check_all_found(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.promise);
    std::string file = real_bundle();
    const std::string expected = "bad: " + row.spoil(file, Places(file));
    const auto findings = verify(file_of(file));
    REQUIRE(findings);
    REQUIRE(findings->errors.size() == 1);
    CHECK(findings->errors[0].message == expected);
    CHECK(error_of(BundledProgramFile::open(file_of(file))) == exactly("kCorrupt: " + expected));
    CHECK(error_of(inspect(file_of(file))) == exactly("kCorrupt: " + expected));
  }
}

/// Writes `value` at a place and returns the error that it must give there.
template <class T>
auto put(std::size_t Places::*place, std::int64_t shift, T value, const std::string& expected) {
  return [=](std::string& file, const Places& places) {
    const auto position = static_cast<std::size_t>(static_cast<std::int64_t>(places.*place) + shift);
    put_at(file, position, value);
    return at(position, expected, std::to_string(value));
  };
}

constexpr auto kTwoGiB = std::uint32_t{1} << 31;
constexpr auto kMost32 = ~std::uint32_t{0};

TEST_CASE(
    "a file that is too short for a header, or of another kind, is no kind of file that etstream knows") {
  struct Kind {
    std::string bytes, verify_says, open_says;
  };
  const Kind rows[] = {
      {"abc", "kUnsupported: bad: is 3 bytes long, expected a .pte, .ptd or .bpte file",
       "kCorrupt: bad: offset 0: expected a file with identifier BP08, found 3 bytes"},
      {std::string("\x08\0\0\0BP07....", 12),
       "kUnsupported: bad: offset 4: expected the identifier of a program (ET12), of a bundle (BP08, BPS1) "
       "or "
       "of tensor data (FT01), found "
       "'BP07'",
       "kCorrupt: bad: offset 4: expected identifier 'BP08', found 'BP07'"},
  };
  for (const Kind& row : rows) {
    CAPTURE(row.bytes);
    CHECK(error_of(verify(file_of(row.bytes))) == exactly(row.verify_says));
    CHECK(error_of(inspect(file_of(row.bytes))) == exactly(row.verify_says));
    CHECK(error_of(BundledProgramFile::open(file_of(row.bytes))) == exactly(row.open_says));
  }
  CHECK(error_of(ProgramFile::open(file_of(real_bundle()))) ==
        exactly("kUnsupported: bad: is a bundled program (BP08), expected a program (ET12); take the program "
                "out of a bundle first"));
}

// truncation_and_flips_test.cpp compares every flipped bit with FlatBuffers' own verifier.
TEST_CASE("each thing that a flatbuffer can have wrong is told with its place") {
  const std::string further_on = "an offset to a multiple of 4 further on inside the file";
  const std::string odd = "the distance to a vtable that is even and inside the file";
  const auto vector_of = [](const char* width) {
    return text("the length of a vector of elements of {} that is inside the file", width);
  };
  const auto size = static_cast<std::int32_t>(real_bundle().size());
  const auto root = static_cast<std::int32_t>(Places(real_bundle()).root);
  const std::size_t end = 4 + std::string_view("count").size();  // of the text of a name
  std::vector<Row> rows = {
      {"a root that is the identifier",
       [=](std::string& file, const Places&) {
         put_at(file, 0, 4U);
         return at(4, odd, std::to_string(get_at<std::int32_t>(file, 4)));
       }},
      {"a vtable two bytes before the file", put(&Places::root, 0, root + 2, odd)},
      {"a vtable at an odd offset", put(&Places::root, 0, std::int32_t{11}, odd)},
      {"a vtable at the end of the file",
       put(&Places::root, 0, root - size, "the distance to a vtable inside the file")},
      {"2^30 tables, 2^32 bytes", put(&Places::suites, 0, std::uint32_t{1} << 30, vector_of("4 bytes"))},
      {"as many bytes as the file has",
       put(&Places::program, 0, static_cast<std::uint32_t>(size), vector_of("1 byte"))},
      {"2^32 - 1 characters", put(&Places::method_name, 0, kMost32, vector_of("1 byte"))},
      {"2^31 sizes", put(&Places::sizes, 0, kTwoGiB, vector_of("4 bytes"))},
      {"a string without the zero at its end",
       [=](std::string& file, const Places& places) {
         put_at(file, places.method_name + end, 'A');
         return at(places.method_name + end, "the zero that ends a string", "65");
       }},
      {"a string up to the end of the file",
       [=](std::string& file, const Places& places) {
         REQUIRE(places.method_name + end + 1 + 2 == file.size());  // it is the last object
         put_at(file, places.method_name, std::uint32_t{8});
         return text("offset {}: expected 1 bytes inside the {} bytes there are", file.size(), file.size());
       }},
      {"an element at an unaligned offset", put(&Places::suites, 4, std::uint32_t{5}, further_on)},
      {"an element 2^32 - 4 on, which is before it in 32 bits",
       put(&Places::suites, 8, kMost32 - 3, further_on)},
      {"a union of an unknown type",
       [](std::string& file, const Places& places) {
         put_at(file, field_of(file, places.value, bp::Value::VT_VAL_TYPE), std::uint8_t{5});
         return at(places.value, "a known type of the union Value.val", "5");
       }},
  };
  for (const std::uint32_t at_root : {0U, 1U, static_cast<std::uint32_t>(size) - 2, kMost32 - 3}) {
    rows.push_back({text("root {}", at_root), [=](std::string& file, const Places&) {
                      put_at(file, 0, at_root);
                      return at(0, further_on, std::to_string(at_root));
                    }});
  }
  for (const std::uint16_t vtable_size : std::vector<std::uint16_t>{3, 5, 0xfffe}) {
    rows.push_back({text("vtable size {}", vtable_size), [=](std::string& file, const Places& places) {
                      const std::size_t vtable = vtable_of(file, places.root);
                      put_at(file, vtable, vtable_size);
                      return at(vtable, "an even vtable size, inside the file", std::to_string(vtable_size));
                    }});
  }
  for (const std::uint16_t offset : std::vector<std::uint16_t>{1, 14, 0xfffc}) {
    rows.push_back(
        {text("field at {}", offset), [=](std::string& file, const Places& places) {
           const std::size_t slot = vtable_of(file, places.root) + bp::BundledProgram::VT_METHOD_TEST_SUITES;
           put_at(file, slot, offset);
           return at(slot,
                     text("the offset of method_test_suites in the table at {}, aligned and inside the file",
                          places.root),
                     std::to_string(offset));
         }});
  }
  check_all_found(rows);
}

}  // namespace
}  // namespace etstream::bad_files_test
