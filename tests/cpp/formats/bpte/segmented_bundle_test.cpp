// SPDX-License-Identifier: BSD-3-Clause
//
// Segmented bundles: their content, their way to BP08 and back, and the errors after damage.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "bundled_program_generated.h"
#include "core/base/hashes.h"
#include "core/base/text.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "formats/bpte/segmented_bundle.h"
#include "golden_bundles.h"
#include "program_generated.h"
#include "seeded_random.h"
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

/// Returns the real program with a test case whose tensors, of `size` bytes, are large enough for segments.
BundledProgram large_bundle(std::int32_t size = 40'000) {
  const std::string data = patterned(static_cast<std::size_t>(size));
  BundledProgram bundle;
  bundle.program = source_of(real_program());
  const Tensor large{ScalarType::kUInt8, {size}, {0}, source_of(data)};
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
    // A smaller one is not told from that which the program has by chance.
    if (alignment < 64) continue;
    const auto same = plan(bundle, {.format = kSegmented, .program_alignment = alignment, .unchecked = true});
    CHECK(converted(original, kSegmented) == written(same.value()));
  }
  CHECK(converted(written(plan(bundle, {.unchecked = true}).value()), kSegmented) == segmented(bundle));
}

/// Returns a bundle in flatc's order whose input and output share their bytes, the last of the file.
std::string sharing_bundle() {
  namespace bp = bundled_program;
  flatbuffers::FlatBufferBuilder builder;
  const auto bytes = [&](std::size_t size) {
    return builder.CreateVector(std::vector<std::uint8_t>(size, static_cast<std::uint8_t>(size)));
  };
  const std::vector<std::int32_t> sizes[] = {{40'000}, {20'000}};
  const auto value = [&](std::size_t i, auto data) {
    const auto order = builder.CreateVector(std::vector<std::uint8_t>{0});
    const auto tensor =
        bp::CreateTensor(builder, scalar_type::ScalarType_BYTE, builder.CreateVector(sizes[i]), data, order);
    return bp::CreateValue(builder, bp::ValueUnion_Tensor, tensor.Union());
  };
  const auto shared = bytes(40'000);
  const auto inputs = builder.CreateVector(std::vector{value(0, shared), value(1, bytes(20'000))});
  const auto outputs = builder.CreateVector(std::vector{value(0, shared)});
  const auto cases =
      builder.CreateVector(std::vector{bp::CreateBundledMethodTestCase(builder, inputs, outputs)});
  const auto suite = bp::CreateBundledMethodTestSuite(builder, builder.CreateString("forward"), cases);
  const auto suites = builder.CreateVector(std::vector{suite});
  bp::FinishBundledProgramBuffer(builder, bp::CreateBundledProgram(builder, 2, suites, bytes(1)));
  return finished(builder);
}

TEST_CASE(
    "a bundle whose tensors share their bytes is shown and comes back, and what is kept of it has no "
    "payload") {
  const std::string other = sharing_bundle();
  std::uint64_t end = 0;
  const auto shown = inspect(file_of(other));
  REQUIRE(shown);
  for (const FilePart& part : shown->parts) {
    CHECK(part.offset >= end);  // each is listed once
    end = part.offset + part.size;
  }
  const std::string between = converted(other, kSegmented, false);
  const auto restored = BundledProgramFile::open(file_of(between))->plan_as(BundleFormat::kBp08, true);
  REQUIRE(restored);
  CHECK(written(*restored) == other);
  CHECK(restored->payload_size == other.size());
  for (const Extent& extent : restored->extents) CHECK(extent.alignment == 1);
  const auto opened = SegmentedBundleFile::open(file_of(between));
  REQUIRE(opened);
  REQUIRE(opened->directory().segments.size() == 5);
  CHECK(opened->directory().segments[4].size == other.size() - 40'000 - 20'000 - 1);
}

TEST_CASE("an original file whose parts are not there is found") {
  const std::string file = converted(sharing_bundle(), kSegmented, false);
  const auto behind = [&](std::size_t table, std::size_t slot) {
    const std::size_t field = field_of(file, table, slot);
    return field + get_at<std::uint32_t>(file, field);
  };
  const std::size_t original = behind(get_at<std::uint32_t>(file, 0), 16);
  const std::size_t metadata = field_of(file, original, 4);
  const std::size_t payloads = behind(original, 6);
  const auto error_after = [&](std::size_t at, auto value) {
    std::string spoilt = file;
    put_at(spoilt, at, value);
    return error_of(BundledProgramFile::open(file_of(spoilt)));
  };
  REQUIRE(get_at<std::uint32_t>(file, payloads) == 3);
  const auto last = get_at<std::uint64_t>(file, payloads + 36);
  const std::string start = text("kCorrupt: bad: offset {}: expected ", original);
  const std::string parts = start + "an original file of less than 5 segments, found metadata in segment ";
  CHECK(error_after(metadata, 5U) == exactly(parts + "5, and 3 payloads"));
  CHECK(error_after(payloads, 5U) == exactly(parts + "4, and 5 payloads"));
  const std::string order = start + "payloads of an original file in order, inside it, of segments below 5, ";
  const auto first = get_at<std::uint64_t>(file, payloads + 4);
  CHECK(error_after(payloads + 12, 5U) == exactly(order + text("found payload 0 at {} of segment 5", first)));
  CHECK(error_after(payloads + 20, first) ==
        exactly(order + text("found payload 1 at {} of segment {}", first,
                             get_at<std::uint32_t>(file, payloads + 28))));
  CHECK(error_after(payloads + 36, last + 1) ==
        exactly(order + text("found payload 2 at {} of segment 1", last + 1)));
}

TEST_CASE("metadata may end where the segments begin, and a bundle without a program has it nowhere") {
  std::string file = segmented(large_bundle(), false);
  const std::string errors = errors_of(file);
  put_at(file, 16, get_at<std::uint64_t>(file, 24));
  CHECK(errors_of(file) == errors);
  flatbuffers::FlatBufferBuilder builder;
  bundled_program::FinishBundledProgramBuffer(builder, bundled_program::CreateBundledProgram(builder, 2));
  CHECK(BundledProgramFile::open(file_of(finished(builder)))->program_offset() == 0);
}

TEST_CASE("a plan of a segmented bundle says what lies where, and tensors from 16 KiB on have segments") {
  BundledProgram bundle = large_bundle(16'384);
  bundle.method_test_suites[0].test_cases[0].inputs.push_back(
      std::get<Tensor>(large_bundle(16'383).method_test_suites[0].test_cases[0].inputs[0]));
  const auto layout = plan(bundle, {.format = kSegmented, .unchecked = true});
  REQUIRE(layout);
  std::string found;
  for (const Extent& extent : layout->extents) {
    if (layout->label(extent) != "metadata")
      found += text("{} {}, ", layout->label(extent), extent.alignment);
  }
  CHECK(found ==
        "header 1, Tensor.data 16, Tensor.data 16, padding 1, program 16384, padding 1, Tensor.data 64, "
        "Tensor.data 64, directory 1, ");
  CHECK(layout->payload_size == layout->size - layout->metadata_size);
}

TEST_CASE("each segment of the program that has bytes is a part with a hash of its own") {
  const auto parts_of = [](const std::string& program) {
    BundledProgram bundle;
    bundle.program = source_of(program);
    return SegmentedBundleFile::open(file_of(segmented(bundle)))->directory().parts.size();
  };
  std::string program = real_program();
  put_at(program, 16, get_at<std::uint64_t>(program, 24));  // so that the segment begins where that ends
  CHECK(parts_of(program) == 2);
  auto* const segment = program::GetMutableProgram(program.data())->mutable_segments()->GetMutableObject(0);
  REQUIRE(segment->mutate_size(1));
  CHECK(parts_of(program) == 2);
  REQUIRE(segment->mutate_size(0));
  CHECK(parts_of(program) == 1);
}

TEST_CASE("any byte that changes is found, in metadata, padding, segments and directory") {
  const std::string file = segmented(large_bundle());
  const std::string unspoilt = errors_of(file);
  std::string spoilt = file;
  for (std::size_t i = 0; i < file.size(); i += i < 1200 || i + 1200 > file.size() ? std::size_t{1} : 97) {
    if (!testing::is_tried(i)) continue;
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

TEST_CASE("verify says that a file has no hashes, and finds bytes in its padding all the same") {
  const std::string file = segmented(large_bundle(40'001), false);
  CHECK(exactly(lines_of(findings_of(file).warnings)) == containing("without hashes"));
  const auto header = read_segmented_bundle_header(file_of(file)).value();
  const auto& places = header.extended;
  const std::uint64_t end = places.segment_base_offset + places.segment_data_size;
  for (const std::uint64_t at : {places.program_size, places.segment_base_offset - 1, end - 40'002, end,
                                 header.directory_offset - 1}) {
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
  const std::string good = segmented(large_bundle());
  const std::size_t directory = directory_of(good);
  const std::size_t base = get_at<std::uint64_t>(good, 24);
  const auto put_both = [&](std::uint64_t offset) {  // of a directory up to the end of the file
    return [=, size = good.size()](std::string& file) {
      put_at(file, 40, offset);
      put_at(file, 48, size - offset);
    };
  };
  const auto at = [](std::size_t offset, const std::string& expected) {
    return text("bad: offset {}: segmented bundle: expected {}", offset, expected);
  };
  const auto extended = [](std::size_t offset, const std::string& expected) {
    return text("bad: offset {}: extended header: expected {}", offset, expected);
  };
  const std::string behind = "a directory behind the metadata that ends the file's ";
  const std::string zeros = "zeros, which are reserved, found others";
  const std::string apart = "parts in order and apart, inside their segments, found ";
  const std::vector<Row> rows = {
      {"header too short", put(std::size_t{12}, std::uint32_t{32}),
       at(12, "an extended header of at least 64 bytes, found 32")},
      {"reserved", put(std::size_t{8 + 50}, std::uint8_t{1}), at(56, zeros)},
      {"metadata beyond the end", put(std::size_t{16}, std::uint64_t{1} << 40),
       extended(16, "a program size inside")},
      {"base inside the metadata", put(std::size_t{24}, std::uint64_t{80}), extended(24, "segments behind")},
      {"no base", put(std::size_t{24}, std::uint64_t{0}), at(24, "segments between metadata and directory")},
      {"segments beyond the directory", put(std::size_t{32}, directory - base + 1),
       at(24, text("segments between metadata and directory, found {} bytes from {} on", directory - base + 1,
                   base))},
      {"directory beyond the end", put(std::size_t{40}, std::uint64_t{1} << 62), at(40, behind)},
      {"directory not aligned", put_both(directory + 8), at(40, behind)},
      {"directory in the metadata", put_both(128),
       at(40, text("{}{} bytes, found {} bytes from 128 on", behind, good.size(), good.size() - 128))},
      {"magic", put_in_directory(0, std::uint32_t{0}),
       at(directory, "the directory's magic BPSd, found none")},
      {"version", put_in_directory(4, std::uint32_t{2}), at(directory + 4, "directory version 1, found 2")},
      {"too many segments", put_in_directory(8, ~std::uint32_t{0}), at(directory + 8, "a directory of")},
      {"unknown flag", put_in_directory(16, std::uint32_t{3}), at(directory + 16, zeros)},
      {"segments overlap", put_in_directory(64 + 64, std::uint64_t{100}),
       at(directory + 64 + 64, "segment 1 from offset")},
      {"segment beyond the end", put_in_directory(64, ~std::uint64_t{0}),
       at(directory + 64, "segment 0 from offset 0 on inside the ")},
      {"reserved behind a segment's hash", put_in_directory(64 + 64 + 48, std::uint8_t{7}),
       at(directory + 64 + 64 + 24, zeros)},
      {"segment shorter than the metadata says",
       [](std::string& file) {
         put_at(file, directory_of(file) + 64 + 64 + 8, std::uint64_t{39'999});
         put_at(file, directory_of(file) + 64 + 64 + 16, std::uint64_t{39'999});
         seal(file);
       },
       "a segment of 39999 bytes, aligned as it lies at 39808, found 40000 bytes, aligned to 64"},
      {"segments that are not aligned", put(std::size_t{24}, base - 8),
       text("aligned as it lies at {}, found {} bytes, aligned to 16384", base - 8, real_program().size())},
      {"parts overlap", put_in_directory(64 + 3 * 64 + 40 + 8, std::uint64_t{0}),
       at(directory + 64 + 3 * 64 + 40, apart)},
      {"flags deny the hashes", put_in_directory(16, std::uint32_t{0}),
       at(directory + 16, "no hashes and no parts, as the flags say, found some")},
      {"part beyond its segment", put_in_directory(64 + 3 * 64 + 16, ~std::uint64_t{0}),
       at(directory + 64 + 3 * 64, apart + "18446744073709551615 bytes at 0 of segment 0")},
      {"no segment for the program",
       [](std::string& file) {
         const auto layout =
             plan(large_bundle(), {.format = kSegmented, .program_alignment = 64, .unchecked = true});
         file = written(layout.value());
         const std::size_t root = get_at<std::uint32_t>(file, 0);
         const std::size_t vtable = vtable_of(file, root);
         put_at(file, vtable + 12, get_at<std::uint16_t>(file, vtable + 4));  // it is the version then
         put_at(file, field_of(file, root, 4), std::uint32_t{3});
       },
       "expected a program_segment below 3, found 3"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.promise);
    std::string file = good;
    row.spoil(file);
    const std::string errors = errors_of(file);
    CAPTURE(errors);
    CHECK(errors.find("bad: ") != std::string::npos);
    CHECK(errors.find(row.error) != std::string::npos);
    CHECK_FALSE(BundledProgramFile::open(file_of(file)));
  }
}

TEST_CASE("a part of a later segment may begin where it likes") {
  std::string file = segmented(large_bundle());
  put_at(file, directory_of(file) + 64 + 3 * 64 + 40, std::uint32_t{1});
  put_at(file, directory_of(file) + 64 + 3 * 64 + 40 + 8, std::uint64_t{0});
  put_at(file, directory_of(file) + 64 + 3 * 64 + 40 + 16, std::uint64_t{9});
  seal(file);
  CHECK(BundledProgramFile::open(file_of(file)));
}

TEST_CASE("a tensor whose segment is not there, or that has data beside it, is refused") {
  const std::string good = segmented(large_bundle(), false);
  const auto* suite = bundled_program::GetBundledProgram(good.data())->method_test_suites()->Get(0);
  const auto* tensor = suite->test_cases()->Get(0)->inputs()->Get(0)->val_as_Tensor();
  std::string no_segment = good;
  put_at(no_segment, field_of(good, position_of(good, tensor), 12), std::uint32_t{3});
  std::string with_data = good;
  put_at(with_data, position_of(good, tensor->data()), std::uint32_t{1});
  for (const auto& [file, number] : {std::pair(no_segment, 3), std::pair(with_data, 1)}) {
    const auto opened = BundledProgramFile::open(file_of(file));
    REQUIRE(opened);
    CHECK(error_of(opened->test_case(opened->suites()[0], 0)) ==
          containing(text("expected a data_segment below 3 and no data beside it, found {}", number)));
  }
}

}  // namespace
}  // namespace etstream::segmented_bundle_test
