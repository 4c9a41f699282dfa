// SPDX-License-Identifier: BSD-3-Clause
//
// Segmented bundles: their content, their way to BP08 and back, and the errors after damage.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "bundled_program_generated.h"
#include "core/base/content_hash.h"
#include "core/base/text.h"
#include "etstream/bundled_program_file.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "formats/bpte/segmented_bundle_file.h"
#include "golden_bundles.h"
#include "test_errors.h"

namespace etstream::segmented_bundle_test {
namespace {

constexpr BundleFormat kSegmented = BundleFormat::kSegmented;

std::string converted(const std::string& file, BundleFormat to, bool hash = true) {
  const auto bundle = BundledProgramFile::open(file_of(file));
  REQUIRE_MESSAGE(bundle, bundle.error().message);
  const auto layout = bundle->plan_as(to, hash);
  REQUIRE_MESSAGE(layout, layout.error().message);
  return written(*layout);
}

/// Returns the real program with a test case whose tensors are large enough for segments.
BundledProgram large_bundle() {
  static const std::string data = patterned(40'000);
  BundledProgram bundle;
  bundle.program = source_of(real_program());
  const Tensor large{ScalarType::kUInt8, {40'000}, {0}, source_of(data)};
  const Tensor small{ScalarType::kUInt8, {100}, {0}, source_of(data).slice(0, 100).value()};
  bundle.method_test_suites = {{"forward", {{{large, small}, {std::int64_t{3}, large}}}}};
  return bundle;
}

std::string segmented(const BundledProgram& bundle, bool hash = true) {
  const auto layout = plan(bundle, {.format = kSegmented, .hash = hash, .unchecked = true});
  REQUIRE_MESSAGE(layout, layout.error().message);
  return written(*layout);
}

/// Returns the errors of verify, or the reason why the file could not be verified.
std::string errors_of(const std::string& file) {
  const auto findings = verify(file_of(file));
  return findings ? lines_of(findings->errors) : findings.error().message;
}

TEST_CASE("every golden bundle goes to segmented and back without a byte changed") {
  for (const std::string& folder : golden_folders()) {
    CAPTURE(folder);
    const std::string original = content_of(folder + "/expected.bpte");
    CHECK(converted(converted(original, kSegmented), BundleFormat::kBp08) == original);
    CHECK(converted(converted(original, kSegmented, false), BundleFormat::kBp08) == original);
    CHECK(converted(original, BundleFormat::kBp08) == original);
  }
}

TEST_CASE("any alignment of the program survives, and a segmented bundle is what was bundled so") {
  const BundledProgram bundle = large_bundle();
  for (const std::uint32_t alignment : {1U, 16U, 32U, 64U, 4096U, 65536U}) {
    CAPTURE(alignment);
    const auto layout = plan(bundle, {.program_alignment = alignment, .unchecked = true});
    REQUIRE(layout);
    const std::string original = written(*layout);
    CHECK(converted(converted(original, kSegmented), BundleFormat::kBp08) == original);
  }
  CHECK(converted(written(plan(bundle, {.unchecked = true}).value()), kSegmented) == segmented(bundle));
}

TEST_CASE("a bundle in flatc's order keeps its own bytes") {
  namespace bp = bundled_program;
  flatbuffers::FlatBufferBuilder builder;
  bp::BundledProgramT content;
  bp::GetBundledProgram(real_bundle().data());
  const std::string golden = real_bundle();
  bp::GetBundledProgram(golden.data())->UnPackTo(&content);
  bp::FinishBundledProgramBuffer(builder, bp::BundledProgram::Pack(builder, &content));
  const std::string other = finished(builder);
  REQUIRE(other != golden);
  const std::string between = converted(other, kSegmented);
  CHECK(converted(between, BundleFormat::kBp08) == other);
  CHECK(errors_of(between).empty());
}

TEST_CASE("a segmented bundle is read as the BP08 bundle of the same content is") {
  const BundledProgram bundle = large_bundle();
  const std::string file = segmented(bundle);
  const auto opened = BundledProgramFile::open(file_of(file));
  REQUIRE(opened);
  CHECK(opened->format() == kSegmented);
  CHECK(text_of(opened->program()) == real_program());
  CHECK(opened->program_offset() % 16384 == 0);
  const auto test_case = opened->test_case(opened->suites().at(0), 0);
  REQUIRE(test_case);
  const auto& large = std::get<Tensor>(test_case->inputs.at(0));
  CHECK(large.data.offset_in(opened->file()).value() % 64 == 0);
  CHECK(text_of(large.data) == patterned(40'000));
  CHECK(text_of(std::get<Tensor>(test_case->inputs.at(1)).data) == patterned(100));
  CHECK(std::get<std::int64_t>(test_case->expected_outputs.at(0)) == 3);
  const auto inspection = inspect(file_of(file));
  REQUIRE(inspection);
  CHECK(inspection->format == FileKind::kSegmentedBundle);
}

TEST_CASE("any byte that changes is found, in metadata, padding, segments and directory") {
  const std::string file = segmented(large_bundle());
  const std::string unspoilt = errors_of(file);
  std::string spoilt = file;
  for (std::size_t i = 0; i < file.size(); i += i < 1200 || i + 1200 > file.size() ? std::size_t{1} : 97) {
    spoilt[i] = static_cast<char>(file[i] ^ (1 << (i % 8)));
    const std::string errors = errors_of(spoilt);
    if (errors == unspoilt || errors.find("bad: ") == std::string::npos)
      FAIL_CHECK("byte " << i << ": " << errors);
    spoilt[i] = file[i];
  }
}

TEST_CASE("damage is told to lie in the tensor, or in the part of the program, where it lies") {
  std::string file = segmented(large_bundle());
  const auto opened = BundledProgramFile::open(file_of(file));
  const auto test_case = opened->test_case(opened->suites().at(0), 0).value();
  const auto tensor = std::get<Tensor>(test_case.inputs.at(0)).data.offset_in(opened->file()).value();
  file[tensor + 5] ^= 1;
  CHECK(errors_of(file).find("segment 1 ('forward' case 0 input 0) of 40000 bytes") != std::string::npos);
  file[tensor + 5] ^= 1;
  const auto segment = opened->open_program()->segments().value().at(0);
  file[opened->program_offset() + segment.offset + 3] ^= 1;
  const std::string errors = errors_of(file);
  CHECK(errors.find("segment 0 (the program)") != std::string::npos);
  CHECK(errors.find(text("the part of the program at its offset {}", segment.offset)) != std::string::npos);
}

TEST_CASE("a segmented bundle that is cut anywhere is refused") {
  const std::string file = segmented(large_bundle());
  for (std::size_t size = 0; size < file.size(); size += size < 600 ? std::size_t{1} : 211) {
    CAPTURE(size);
    const std::string errors = errors_of(file.substr(0, size));
    CHECK_FALSE(errors.empty());
  }
  CHECK_FALSE(errors_of(file + '\0').empty());
}

TEST_CASE("without hashes the file has none, and verify says so") {
  const std::string file = segmented(large_bundle(), false);
  const auto findings = verify(file_of(file));
  REQUIRE(findings);
  CHECK(lines_of(findings->warnings).find("without hashes") != std::string::npos);
}

TEST_CASE("bytes in the padding are found without hashes too") {
  const std::string file = segmented(large_bundle(), false);
  const auto places = read_segmented_bundle_header(file_of(file)).value().extended;
  for (const std::uint64_t at : {places.program_size, places.segment_base_offset - 1}) {
    CAPTURE(at);
    std::string spoilt = file;
    REQUIRE(spoilt[at] == '\0');
    spoilt[at] = 1;
    CHECK(exactly(errors_of(spoilt)) ==
          containing(text("offset {}: expected zero, in the padding, found 1", at)));
  }
}

/// Returns the position of the directory.
std::size_t directory_of(const std::string& file) { return get_at<std::uint64_t>(file, 8 + 32); }

/// Writes the directory's own hash anew, so that another error in it is found.
void seal(std::string& file) {
  const auto header = read_segmented_bundle_header(file_of(file)).value();
  const std::string bytes = file.substr(header.directory_offset);
  std::string zeroed = bytes;
  std::fill_n(zeroed.begin() + 48, 16, '\0');
  ContentHasher hasher;
  hasher.update(std::as_bytes(std::span(zeroed)));
  const ContentHash hash = hasher.hash();
  std::memcpy(file.data() + header.directory_offset + 48, hash.data(), hash.size());
}

TEST_CASE("each thing that is wrong with header or directory has its own error") {
  struct Row {
    std::string promise;
    std::function<void(std::string&)> spoil;
    std::string error;
  };
  const auto put = [](auto place, auto value) {
    return [=](std::string& file) { put_at(file, place, value); };
  };
  const auto put_in_directory = [](std::size_t place, auto value) {
    return [=](std::string& file) {
      put_at(file, directory_of(file) + place, value);
      seal(file);
    };
  };
  const std::vector<Row> rows = {
      {"header too short", put(std::size_t{12}, std::uint32_t{32}),
       "an extended header of at least 64 bytes"},
      {"reserved", put(std::size_t{8 + 50}, std::uint8_t{1}), "zeros, which are reserved"},
      {"metadata beyond the end", put(std::size_t{16}, std::uint64_t{1} << 40), "a program size inside"},
      {"base inside the metadata", put(std::size_t{24}, std::uint64_t{80}), "expected segments"},
      {"segments beyond the end", put(std::size_t{32}, std::uint64_t{1} << 62), "expected segments"},
      {"directory beyond the end", put(std::size_t{40}, std::uint64_t{1} << 62),
       "a directory behind the metadata"},
      {"directory too small", put(std::size_t{48}, std::uint64_t{8}), "a directory behind the metadata"},
      {"magic", put_in_directory(0, std::uint32_t{0}), "the directory's magic"},
      {"version", put_in_directory(4, std::uint32_t{2}), "directory version 1, found 2"},
      {"too many segments", put_in_directory(8, ~std::uint32_t{0}), "a directory of"},
      {"unknown flag", put_in_directory(16, std::uint32_t{3}), "zeros, which are reserved"},
      {"segments overlap", put_in_directory(64 + 64, std::uint64_t{100}), "segment 1 from offset"},
      {"segment beyond the end", put_in_directory(64, ~std::uint64_t{0}), "segment 0 from offset"},
      {"sizes differ", put_in_directory(64 + 16, std::uint64_t{1}), "segment 0 from offset"},
      {"reserved in a segment", put_in_directory(64 + 24, std::uint32_t{7}), "zeros, which are reserved"},
      {"reserved behind a segment's hash", put_in_directory(64 + 48, std::uint8_t{7}),
       "zeros, which are reserved"},
      {"segment shorter than the metadata says",
       [](std::string& file) {
         put_at(file, directory_of(file) + 64 + 64 + 8, std::uint64_t{39'999});
         put_at(file, directory_of(file) + 64 + 64 + 16, std::uint64_t{39'999});
         seal(file);
       },
       "a segment of 39999 bytes, aligned as it lies at 39808, found 40000 bytes, aligned to 64"},
      {"parts overlap", put_in_directory(64 + 3 * 64 + 40 + 8, std::uint64_t{0}), "parts in order and apart"},
      {"parts out of order", put_in_directory(64 + 3 * 64, std::uint32_t{1}), "parts in order and apart"},
      {"flags deny the hashes", put_in_directory(16, std::uint32_t{0}), "no hashes and no parts"},
      {"part beyond its segment", put_in_directory(64 + 3 * 64 + 16, ~std::uint64_t{0}),
       "parts in order and apart"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.promise);
    std::string file = segmented(large_bundle());
    row.spoil(file);
    const std::string errors = errors_of(file);
    CAPTURE(errors);
    CHECK(errors.find("bad: ") != std::string::npos);
    CHECK(errors.find(row.error) != std::string::npos);
    CHECK_FALSE(BundledProgramFile::open(file_of(file)));
  }
  for (const std::size_t at : {std::size_t{0}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
    std::string file = segmented(large_bundle());
    put_in_directory(at, std::uint32_t{9})(file);
    const std::string place = text("bad: offset {}: ", directory_of(file) + at);
    const std::string errors = errors_of(file);
    CAPTURE(place);
    CAPTURE(errors);
    CHECK(errors.find(place) != std::string::npos);
  }
}

}  // namespace
}  // namespace etstream::segmented_bundle_test
