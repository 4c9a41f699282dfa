// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/embedded_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "etstream/sink.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"
#include "test_sources.h"

namespace etstream::embedded_file_test {
namespace {

EmbeddedFile three_bytes() {
  return {.data = source_of("abc"), .path = "/model.bin", .symbol = "model", .target = ObjectTarget::kArm};
}

std::string written(const EmbeddedFile& file, std::string_view output) {
  const auto planned = plan(file, output);
  REQUIRE_MESSAGE(planned, planned.error().message);
  return text_of(source_of(*planned).value());
}

TEST_CASE("a file that is opened has an absolute path, a name in C and its alignment") {
  const auto file = open_embedded_file(kExamplesDir + "/../examples/model.pte");
  REQUIRE_MESSAGE(file, file.error().message);
  CHECK(file->path == std::filesystem::path(kExamplesDir + "/model.pte").lexically_normal().string());
  CHECK(file->symbol == "model_pte");
  CHECK(file->alignment == 128);
  CHECK(section_of(*file) == ".rodata.model_pte");
}

TEST_CASE("names that C does not have are spelt so that it has them") {
  const TemporaryFolder folder;
  for (const auto& [name, symbol] : {std::pair("1st.pte", "_1st_pte"), std::pair("a b-ü.x", "a_b____x"),
                                     std::pair("class", "_class"), std::pair("a1", "a1")}) {
    put_file(folder / name, "abc");
    const auto file = open_embedded_file(folder / name);
    REQUIRE_MESSAGE(file, file.error().message);
    CHECK(file->symbol == symbol);
  }
}

TEST_CASE("symbols, sections, alignments and outputs that can't be are refused") {
  const auto refused = [](auto change, std::string_view output = "model.o") {
    EmbeddedFile file = three_bytes();
    change(file);
    return error_of(plan(file, output));
  };
  CHECK(refused([](auto& file) { file.data = source_of(""); }) ==
        exactly("kInvalidArgument: memory: is empty, and C has no empty arrays"));
  for (const std::string symbol : {"", "1a", "a-b", "a b", "ü", "while", "class", "_Bool"}) {
    CHECK(refused([&](auto& file) { file.symbol = symbol; }) ==
          exactly("kInvalidArgument: expected a symbol that is a name in C and C++, found '" + symbol + "'"));
  }
  CHECK(refused([](auto& file) { file.symbol = std::string(256, 'a'); }) == containing("expected a symbol"));
  for (const std::string section : {".bss", ".noinit.model", "COMMON"}) {
    CHECK(
        refused([&](auto& file) { file.section = section; }) ==
        exactly("kInvalidArgument: expected a section that has bytes in the file, such as .rodata, found '" +
                section + "'"));
  }
  CHECK(refused([](auto& file) { file.section = "a,\"aw\""; }) ==
        containing("expected a section's name of letters, digits and any of \"._$-\", found 'a,\"aw\"'"));
  CHECK(refused([](auto& file) { file.section = std::string(256, 'a'); }) == containing("a section's name"));
  for (const std::uint64_t alignment :
       {std::uint64_t{0}, std::uint64_t{24}, std::uint64_t{1} << 31, (std::uint64_t{1} << 32) + 16}) {
    CHECK(refused([&](auto& file) { file.alignment = alignment; }) ==
          containing("expected a power of two from 1 to 1073741824"));
  }
  CHECK(refused([](auto& file) { file.target.reset(); }) ==
        exactly("kInvalidArgument: model.o: expected a target, found none"));
  CHECK(refused([](auto&) {}, "model.obj") ==
        exactly("kInvalidArgument: expected an output that ends in .h, .S or .o, found 'model.obj'"));
}

TEST_CASE("the longest names, the largest alignment and a path with a space are taken") {
  const TemporaryFolder folder;
  EmbeddedFile file = three_bytes();
  file.symbol = std::string(255, 's');
  file.section = ".bss_" + std::string(250, 't');
  file.alignment = std::uint64_t{1} << 30;
  file.path = folder / "a b~";
  put_file(file.path, "abc");
  for (const std::string output : {"a.h", "a.S"}) CHECK(error_of(plan(file, output)) == "no error");
}

TEST_CASE("paths that can't stand in a source are refused there, and don't matter elsewhere") {
  for (const std::string path : {"", "a\"b", "a\\b", "a\nb", "a\x7f"}) {
    EmbeddedFile file = three_bytes();
    file.path = path;
    CHECK(error_of(plan(file, "a.S")) == containing("expected a path without control characters and \"\\"));
    CHECK(plan(file, "a.o"));
    CHECK(plan(file, "a.h"));
  }
}

TEST_CASE("a packed file becomes the original in an object file, and is refused in a source") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.bin.etz";
  const std::string content = patterned(5000);
  const auto sink = open_file_sink(path);
  REQUIRE_MESSAGE(sink, sink.error().message);
  REQUIRE(write(plan_copy(source_of(content), "data"), **sink));
  auto file = open_embedded_file(path);
  REQUIRE_MESSAGE(file, file.error().message);
  file->target = ObjectTarget::kAmd64;
  CHECK(file->symbol == "model_bin");
  CHECK(file->data.size() == content.size());
  CHECK(written(*file, "a.o").find(content) == 64);
  CHECK(error_of(plan(*file, "a.S")) ==
        containing("is a packed file, and would be embedded so; write an object file, or unpack it first"));
}

TEST_CASE("data in an object file lies at a multiple of its alignment, up to a page") {
  for (const std::uint64_t alignment : {1U, 16U, 512U, 4096U, 65536U}) {
    EmbeddedFile file = three_bytes();
    file.alignment = alignment;
    const std::size_t place = written(file, "a.o").find("abc");
    CHECK(place % std::min<std::uint64_t>(alignment, 4096) == 0);
    CHECK(place <= 4096);
  }
}

}  // namespace
}  // namespace etstream::embedded_file_test
