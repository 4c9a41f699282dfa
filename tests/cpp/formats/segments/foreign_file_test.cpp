// SPDX-License-Identifier: BSD-3-Clause
//
// Errors about files of other tools name their format, whatever was expected.
#include "formats/segments/file_kind.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "etstream/bundled_program.h"
#include "etstream/fat_container.h"
#include "etstream/file_kind.h"
#include "etstream/native_package.h"
#include "etstream/program.h"
#include "etstream/tensor_data.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors/safetensors.h"
#include "test_errors.h"
#include "test_sources.h"

namespace etstream::foreign_file_test {
namespace {

using namespace std::string_literals;

struct Foreign {
  std::string bytes;
  std::string message;
};

std::string pointer() {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') +
         "\nsize 4943000480\n";
}

std::vector<Foreign> all_foreign() {
  const std::string again = "; download it again, and look at the address and at who may read it";
  return {
      {"", "is empty, as a download is that failed; get it again"},
      {pointer(), "is a Git LFS pointer, which stands for the file of 4943000480 bytes; get the file itself"},
      {"<!DOCTYPE html><html><body>Access denied</body></html>", "is an HTML page"},
      {"\xef\xbb\xbf\r\n  <HTML lang=en>" + std::string(5000, 'x'), "is an HTML page"},
      {R"(<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>)",
       "is an error of an object store, '<?xml"},
      {R"(<?xml version="1.0"?><plist/>)", "is text, '<?xml"},
      {R"({"error":"Repository not found"})",
       R"(is an error as JSON, '{"error":"Repository not found"}')" + again},
      {R"({"message":"Bad credentials","documentation_url":"x"})", "is an error as JSON"},
      {"Entry not found", "is text, 'Entry not found'" + again},
      {"Invalid username or password.\n", "is text, 'Invalid username or password.'" + again},
      {std::string(100, 'x') + '\n', "is text, '" + std::string(100, 'x') + "'" + again},
      {"y" + std::string(1023, 'x'), "is text, 'y" + std::string(99, 'x') + "...'" + again},
      {"\x1f\x8b\x08\0\0\0\0\0\0\x03"s, "is compressed with gzip; unpack it first"},
      {"\x28\xb5\x2f\xfd\x04\0\0\0\0\0"s, "is compressed with zstd; unpack it first"},
      {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s, "is a file of torch before 1.6"},
      {"\x80\x04\x95\x0a\0\0\0\0\0"s, "is a pickle, which etstream never executes"},
      {"\x93NUMPY\x01\0v\0{"s, "is a NumPy array (.npy)"},
      {"\x1c\0\0\0TFL3\x14\0"s, "is a model of TensorFlow Lite"},
      {"weights" + std::string(64, '\0') + "CWPX\2\0\0\0"s, "is a weight cache of XNNPACK"},
      {std::string(64, '\0') + "CWPX\1\0\0\0"s, "is a weight cache of XNNPACK"},
  };
}

TEST_CASE("a wrong download is called what it is by whatever opens it") {
  for (const Foreign& foreign : all_foreign()) {
    CAPTURE(foreign.message);
    const ByteSource file = source_of(foreign.bytes);
    const std::string expected = "kUnsupported: memory: " + foreign.message;
    CHECK(error_of(refuse_foreign(file)) == containing(expected));
    CHECK(error_of(ProgramFile::open(file)) == containing(expected));
    CHECK(error_of(TensorDataFile::open(file)) == containing(expected));
    CHECK(error_of(BundledProgramFile::open(file)) == containing(expected));
    CHECK(error_of(FatContainerFile::open(file)) == containing(expected));
    CHECK(error_of(NativePackageFile::open(file)) == containing(expected));
    CHECK(error_of(open_safetensors(file)) == containing(expected));
    CHECK(error_of(open_gguf(file)) == containing(expected));
    CHECK(error_of(begins_json_object(file)) == containing(expected));
    CHECK(error_of(file_kind(file)) == containing(expected));
  }
}

TEST_CASE("what may be a model, or JSON of one, is not taken for a wrong download") {
  const std::vector<std::string> files = {
      "\x1f\x8b\x08\0ET12\0\0\0\0"s,                                 // the offset to a root
      "\x1f\x8b\x08\0\0\0\0\0{\"a\":{"s,                             // the length of a header
      "PK\3\4"s + std::string(22, '\0') + "\x0b\0\0\0program.ptg"s,  // a package
      "PK\3\4",
      R"({"metadata":{"total_size":1},"weight_map":{"error":"a.safetensors"}})",
      R"({"version": 0, "execution_plan": []})",
      R"({"a" : "error", "b": ["error", {"error": 1}], "c": {"error": 1}})",
      R"([1, 2, 3, 4, 5])",
      "7 bytes",
      "{",
      R"({"error)",
      "\x01 {\"error\": 1}",
      "\1"s + std::string(64, '\0'),
      "\x01\x02\x03\x04 bytes of something else",
      std::string(64, '\0'),
  };
  for (const std::string& bytes : files) {
    CAPTURE(bytes);
    CHECK(refuse_foreign(source_of(bytes)));
  }
}

TEST_CASE("a file that can't be read is not called anything") {
  const auto cut = [](std::string_view begin) {
    return ByteSource::concatenation({source_of(begin), failing(1000, 0)}).value();
  };
  CHECK(error_of(refuse_foreign(failing(1000, 0))) == containing("the disk is on fire"));
  CHECK(error_of(refuse_foreign(failing(5, 0))) == containing("the disk is on fire"));
  CHECK(error_of(refuse_foreign(failing(5000, 4000))) == containing("the disk is on fire"));
  CHECK(refuse_foreign(cut("\x20\0\0\0ET12more"s)));  // of which no more is read
  CHECK(error_of(file_kind(cut("PK\3\4 more bytes"))) == containing("the disk is on fire"));
  const ByteSource part = failing(10, 0).slice(0, 5).value();
  CHECK(error_of(file_kind(part)) == containing("the disk is on fire"));
  CHECK(error_of(begins_json_object(part)) == containing("the disk is on fire"));
}

// tests/cli/cases/names_files_of_another_kind.sh has the kinds of all files, as each command tells them.
TEST_CASE(
    "a part of a file is not called anything, nor is a file that can't be read, where another was expected") {
  const auto explained = [](const ByteSource& file) {
    return full_message(explain(file, {"a program (ET12)", {FileKind::kProgram}},
                                Error{ErrorCode::kCorrupt, "it is broken"}));
  };
  CHECK(explained(source_of("----\x20\0\0\0BP08more"s).slice(4, 12).value()) == "it is broken");
  CHECK(explained(failing(1000, 0)) == "it is broken");
  const auto cut = ByteSource::concatenation({source_of(R"({"weight_map": {}})"), failing(1000, 0)});
  CHECK(explained(cut.value()) == "it is broken");
}

TEST_CASE("a kind is told by bytes at their places, and a file of none is called what it begins with") {
  CHECK_FALSE(known_kind("\1PK\3\4 more bytes").has_value());
  CHECK(error_of(file_kind(source_of("\1\2\3\4ABC"))) ==
        exactly("kUnsupported: memory: is 7 bytes long, expected a .pte, .ptd or .bpte file"));
  for (const std::string bytes : {"\1\2\3\4ABCD", "\1\2\3\4ABCDE"}) {
    CHECK(error_of(file_kind(source_of(bytes))) == containing("found 'ABCD'"));
  }
}

TEST_CASE("the name of a zip archive's first member tells what it is") {
  const auto zip = [](const std::string& name) {
    const std::string length = {static_cast<char>(name.size() & 255), static_cast<char>(name.size() >> 8)};
    return "PK\3\4"s + std::string(22, '\0') + length + "\0\0"s + name;
  };
  CHECK(file_kind(source_of(zip(std::string(481, 'x') + "/data.pkl"))).value() == FileKind::kTorch);
  CHECK(file_kind(source_of(zip(std::string(482, 'x') + "/data.pkl"))).value() == FileKind::kNativePackage);
}

TEST_CASE("a JSON object begins within 64 bytes of white space") {
  CHECK(begins_json_object(source_of(std::string(63, ' ') + "{}")).value());
  CHECK_FALSE(begins_json_object(source_of(std::string(64, ' ') + "{}")).value());
  CHECK_FALSE(begins_json_object(source_of("[1, 2, 3, 4, 5]")).value());
}

}  // namespace
}  // namespace etstream::foreign_file_test
