// SPDX-License-Identifier: BSD-3-Clause
//
// Files that change while they are read.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "etstream/bundled_program.h"
#include "etstream/diff.h"
#include "etstream/inspect.h"
#include "etstream/program_weights.h"
#include "etstream/verify.h"
#include "file_bytes.h"
#include "open_files.h"
#include "test_errors.h"

namespace etstream::changed_files_test {
namespace {

ByteSource opened(const std::string& path) {
  auto file = ByteSource::file(path);
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(file).value();
}

constexpr auto* kChanged = ": was changed or replaced while it was read; run again once it is complete";

TEST_CASE("a file that is shortened after it was opened is noticed at the read") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.bpte";
  put_file(path, real_bundle());
  const ByteSource file = opened(path);
  std::filesystem::resize_file(path, 100);
  const std::string expected = path +
                               ": has nothing at offset 100, expected 6336 bytes as when it was opened: it "
                               "was shortened while it was read";
  CHECK(error_of(BundledProgramFile::open(file)) == exactly("kCorrupt: " + expected));
  CHECK(error_of(inspect(file)) == exactly("kCorrupt: " + expected));
  CHECK(code_of(verify(file)) == "kCorrupt");
}

TEST_CASE("a file that is shortened between its metadata and its payload is noticed at the payload") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.bpte";
  put_file(path, real_bundle());
  const auto bundle = BundledProgramFile::open(opened(path));
  REQUIRE(bundle);
  std::filesystem::resize_file(path, 5000);
  const auto read = bundle->test_case(bundle->suites()[0], 0);
  REQUIRE(read);  // its metadata is in memory
  const auto& data = std::get<Tensor>(read->inputs[0]).data;
  std::vector<std::byte> bytes(data.size());
  CHECK(error_of(data.read_at(0, bytes)) ==
        containing("kCorrupt: " + path + ": has nothing at offset 6192, expected 6336 bytes"));
  CHECK(code_of(write_test_cases(*bundle, folder / "cases")) == "kCorrupt");
  CHECK(folder.names() == std::vector<std::string>{"model.bpte"});
}

TEST_CASE("a file that is changed, with its time put back, is noticed by all that read it to the end") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.bpte";
  put_file(path, real_bundle());
  const ByteSource file = opened(path);
  const auto before = std::filesystem::last_write_time(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // more than a step of the file system's clock
  put_file(path, real_bundle());
  std::filesystem::last_write_time(path, before);
  const std::string expected = "kCorrupt: " + path + kChanged;
  CHECK(error_of(verify(file)) == exactly(expected));
  CHECK(error_of(find_duplicates(file)) == exactly(expected));
  CHECK(error_of(inspect(file)) == exactly(expected));
  CHECK(error_of(diff(file, file)) == exactly(expected));
  CHECK(error_of(diff(source_of(real_bundle()), file)) == exactly(expected));
  CHECK(error_of(read_contents(file)) == exactly(expected));
  const auto bundle = BundledProgramFile::open(file);
  REQUIRE(bundle);
  CHECK(error_of(verify(*bundle->open_program(), {})) == exactly(expected));
  CHECK(error_of(write_test_cases(*bundle, folder / "cases")) == exactly(expected));
  CHECK(folder.names() == std::vector<std::string>{"model.bpte"});
  std::filesystem::create_directory(folder / "9");
  put_file(folder / "9/0.bin", "an output of no test case");
  CHECK(error_of(compare_outputs(file, folder.path())) == exactly(expected));
}

TEST_CASE("a file that is replaced is noticed when it has to be opened again") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.bpte";
  put_file(path, real_bundle());
  const ByteSource file = opened(path);
  put_file(folder / "new", real_bundle());
  std::filesystem::rename(folder / "new", path);
  CHECK(verify(file));               // the old one, which is still open
  open_files(folder, "other-", 70);  // so that no descriptor is left to the file
  CHECK(error_of(verify(file)) == exactly("kCorrupt: " + path + kChanged));
  CHECK(error_of(BundledProgramFile::open(file)) == exactly("kCorrupt: " + path + kChanged));
  std::filesystem::remove(path);
  open_files(folder, "other-", 70);
  CHECK(code_of(verify(file)) == "kNotFound");
}

}  // namespace
}  // namespace etstream::changed_files_test
