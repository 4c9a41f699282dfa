// SPDX-License-Identifier: BSD-3-Clause
//
// The paths of pieces: those of every golden file, and those of names that are not meant to be paths.
#include "files/pieces.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "core/base/text.h"
#include "etstream/fat_container.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::pieces_test {
namespace {

/// Returns the pieces by their paths, no two of which are the same.
std::map<std::string, ByteSource> pieces_of(const ByteSource& file) {
  std::map<std::string, ByteSource> out;
  const auto walked = for_each_piece(file, [&](const Piece& piece) {
    CAPTURE(piece.path);
    CHECK(out.emplace(piece.path, piece.data).second);
    return true;
  });
  REQUIRE_MESSAGE(walked, walked.error().message);
  return out;
}

std::vector<std::string> paths_of(const std::string& file) {
  std::vector<std::string> out;
  REQUIRE(for_each_piece(file_of(file), [&](const Piece& piece) {
    out.push_back(piece.path);
    return true;
  }));
  return out;
}

std::string fat(const std::vector<FatContainer::Payload>& payloads) {
  FatContainer container;
  container.payloads = payloads;
  const auto planned = plan(container);
  REQUIRE_MESSAGE(planned, planned.error().message);
  return written(*planned);
}

/// Checks that the pieces that inspect() lists are there with their sizes; those with a place, with the bytes
/// there too. Returns how many those are.
int check_inspected(const std::string& file) {
  const auto pieces = pieces_of(file_of(file));
  int out = 0;
  const auto check = [&](const std::string& path, std::uint64_t size, std::optional<std::uint64_t> offset) {
    CAPTURE(path);
    REQUIRE(pieces.contains(path));
    const auto piece = find_piece(file_of(file), path);
    REQUIRE_MESSAGE(piece, piece.error().message);
    CHECK(piece->size() == size);
    CHECK(text_of(*piece) == text_of(pieces.at(path)));
    if (!offset) return;
    CHECK(text_of(*piece) == file.substr(*offset, size));
    ++out;
  };
  const auto found = inspect(file_of(file));
  REQUIRE(found);
  for (const FilePart& part : found->parts) {
    const bool is_range = !part.what.ends_with(", strided") && !part.what.ends_with(", in parts");
    check(part.path, part.size, is_range ? std::optional(part.offset) : std::nullopt);
  }
  for (const InspectedPayload& payload : found->payloads) {
    check(payload.path, payload.data.size(), {});
    REQUIRE(payload.part_paths.size() == payload.parts.size());
    for (std::size_t i = 0; i < payload.parts.size(); ++i) {
      check(payload.part_paths[i], payload.parts[i].size, {});
      CHECK(text_of(pieces.at(payload.part_paths[i])) ==
            text_of(payload.data).substr(payload.parts[i].offset, payload.parts[i].size));
    }
  }
  for (const NamedDataInfo& info : found->program_data) {
    if (!info.path.empty()) check(info.path, info.size, info.offset);
  }
  const auto named = named_paths(*found);
  for (std::size_t i = 0; i < named.size(); ++i) {
    check(named[i], found->named_data[i].data.size(), found->named_data[i].offset);
  }
  for (const InspectedMethod& method : found->methods) {
    for (const auto& delegate : method.delegates) check(delegate.path, delegate.data.size(), {});
    for (const auto& tensor : method.tensors) {
      const std::string path = piece_path(*found, tensor);
      if (!path.empty()) check(path, tensor.size, {});
    }
  }
  return out;
}

TEST_CASE("every path that inspect prints gives the bytes that are there, in every golden file") {
  int files = 0;
  int places = 0;
  for (const std::string& folder : {kGoldenDir, kExamplesDir}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path();
      CAPTURE(path);
      const std::string file = content_of(path);
      const auto kind = file_kind(file_of(file));
      if (!kind) continue;
      places += check_inspected(file);
      CHECK(check_inspected(fat({{"a/b", file_of(file)}, {"x", file_of("x")}})) == 2);
      // A piece of a payload has the payload's path before its own.
      if (*kind == FileKind::kFatContainer) continue;
      const auto within = pieces_of(file_of(fat({{"a/b", file_of(file)}})));
      for (const auto& [piece, data] : pieces_of(file_of(file))) {
        REQUIRE(within.contains("a%2Fb/" + piece));
        CHECK(text_of(within.at("a%2Fb/" + piece)) == text_of(data));
      }
      ++files;
    }
  }
  CHECK(files > 20);
  CHECK(places > 200);
}

TEST_CASE("a name from a file is a word of a path, whatever is in it") {
  CHECK(path_word("layers.0/w é'\"\\", true) == "layers.0/w é'\"\\");
  CHECK(path_word("a/b#2%2F\x1b\n\xff\u202e", false) == "a%2Fb%232%252F%1B%0A%FF%E2%80%AE");
  const std::vector<std::string> methods = {"f", "named", "f", "f#2", "a/b", "", "f", "segments"};
  CHECK(method_paths("x/", methods) == std::vector<std::string>{"x/f", "x/%6Eamed", "x/f#2", "x/f%232",
                                                                "x/a%2Fb", "x/", "x/f#3", "x/%73egments"});
}

TEST_CASE("the pieces of a program are its tables, its segments and what is in them") {
  CHECK(paths_of(made::file({
            .constants =
                {{std::string(16, 'a'), {4}, "w"},
                 {std::string(16, 's'), {4}, "state", ScalarType::kFloat32, made::Place::kInitialState}},
            .named_data = {{"a/b", "12345"}, {"", "6"}, {"a/b", "7"}},
            .delegates = {{"B", "inner"}},
        })) == std::vector<std::string>{"flatbuffer", "segments/0", "segments/1", "segments/2", "segments/3",
                                        "segments/4", "segments/5", "constants/1", "initial/1",
                                        "forward/delegate 0", "named/a/b", "named/", "named/a/b#2"});
}

TEST_CASE("a wrong path is told with those that are near, or with the first ones") {
  const ByteSource file = file_of(made::tensor_data({{"1234", {1}, "layers.0.weight"}, {"5678", {1}, "b"}}));
  const auto told = [&](const std::string& path) { return error_of(find_piece(file, path)); };
  CHECK(told("layers.0.weight") ==
        exactly("kNotFound: bad: there is no piece 'layers.0.weight'; near is 'named/layers.0.weight'"));
  CHECK(told("named/layer.0.weight") == containing("near is 'named/layers.0.weight'"));
  CHECK(told("segments/7") == containing("near are 'segments/0', 'segments/1'"));
  CHECK(told("zzz") == containing("there are 'flatbuffer', 'segments/0', 'segments/1'"));
  CHECK(told("") == containing("there is no piece ''; there are 'flatbuffer'"));
}

TEST_CASE("a piece is found though what comes after it is damaged") {
  std::string program = made::file({.constants = {{std::string(16, 'a'), {4}, "w"}}});
  CHECK(find_piece(file_of(program), "segments/0").value().size() == 16);
  const auto visited = [&] {
    int out = 0;
    REQUIRE(for_each_piece(file_of(program), [&](const Piece&) { return ++out < 2; }));
    return out;
  };
  CHECK(visited() == 2);
}

}  // namespace
}  // namespace etstream::pieces_test
