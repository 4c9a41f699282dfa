// SPDX-License-Identifier: BSD-3-Clause
//
// A real program whose extended header, or whose segments, are wrong in one way.
#include <doctest/doctest.h>

#include <functional>

#include "core/base/text.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "file_bytes.h"
#include "formats/pte/program_model.h"
#include "formats/segments/data_segments.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::extended_header_test {
namespace {

constexpr std::uint64_t kMost64 = ~std::uint64_t{0};
constexpr std::uint64_t kTop = std::uint64_t{1} << 63;

/// The header's fields in the file.
enum Field : std::size_t {
  kMagic = 8,
  kLength = 12,
  kProgramSize = 16,
  kSegmentBase = 24,
  kSegmentSize = 32
};

TEST_CASE("a header that contradicts itself or the file is refused at its offset") {
  const std::uint64_t file_size = real_program().size();
  REQUIRE(file_size == 23400);
  const std::string size_text = "a program size inside the file's 23400 bytes, found ";
  const std::string inside = "segments inside the file's 23400 bytes, found ";
  const std::string behind = "segments behind the program's 2488 bytes, found them from ";
  struct Row {
    Field field;
    std::uint64_t value;  // 64 bits, but for the length
    std::string expected;
  };
  const Row rows[] = {
      {kLength, 0, "a length of at least 24, found 0"},
      {kLength, 23, "a length of at least 24, found 23"},
      {kProgramSize, file_size + 1, size_text + "23401"},
      {kProgramSize, kTop, size_text + std::to_string(kTop)},
      {kProgramSize, kMost64, size_text + std::to_string(kMost64)},
      {kSegmentBase, 2487, behind + "2487 on"},
      {kSegmentBase, 1, behind + "1 on"},
      {kSegmentBase, 2561, inside + "20840 bytes from 2561 on"},
      {kSegmentBase, file_size, inside + "20840 bytes from 23400 on"},
      {kSegmentBase, kTop, inside + text("20840 bytes from {} on", kTop)},
      {kSegmentBase, kMost64 - 20840 + 1, inside + text("20840 bytes from {} on", kMost64 - 20840 + 1)},
      {kSegmentSize, 20841, inside + "20841 bytes from 2560 on"},
      {kSegmentSize, kTop, inside + text("{} bytes from 2560 on", kTop)},
      {kSegmentSize, kMost64 - 2559, inside + text("{} bytes from 2560 on", kMost64 - 2559)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    std::string file = real_program();
    if (row.field == kLength) {
      put_at(file, row.field, static_cast<std::uint32_t>(row.value));
    } else {
      put_at(file, row.field, row.value);
    }
    // A wrong data size is reported with the size that it contradicts.
    std::size_t offset = row.field;
    if (row.field == kSegmentSize) offset = kSegmentBase;
    const std::string expected = text("bad: offset {}: extended header: expected {}", offset, row.expected);
    CHECK(lines_of(findings_of(file).errors) == expected + "\n");
    CHECK(error_of(ProgramFile::open(file_of(file))) == exactly("kCorrupt: " + expected));
  }
}

TEST_CASE(
    "a header that is shorter or longer than ExecuTorch 1.5.1 writes it is read as far as it is known") {
  std::string file = real_program();
  put_at(file, kLength, 24U);
  put_at(file, kSegmentSize, std::uint64_t{0});
  const auto shorter = ProgramFile::open(file_of(file));
  REQUIRE(shorter);
  CHECK(shorter->model().header().length == 24);
  CHECK(shorter->model().header().segment_base_offset == 2560);
  CHECK(shorter->model().header().segment_data_size == 0);
  CHECK(findings_of(file).ok());
  put_at(file, kSegmentBase, std::uint64_t{23401});  // of which ExecuTorch sees nothing before it loads one
  CHECK(ProgramFile::open(file_of(file)));
  CHECK(exactly(lines_of(findings_of(file).errors)) == containing("expected a segment inside the file's"));
  put_at(file, kSegmentBase, std::uint64_t{2560});
  put_at(file, kSegmentSize, std::uint64_t{20840});  // is not in the header now
  const Findings findings = findings_of(file);
  CHECK(findings.ok());
  CHECK(lines_of(findings.warnings) ==
        "bad: offset 32: expected zero, in the padding between objects, found 104\n");
}

TEST_CASE("a header that says it is longer than ExecuTorch reads it is warned of where objects lie in it") {
  for (const std::uint32_t length : {64U, 2481U, 0xffffffffU}) {
    CAPTURE(length);
    std::string file = real_program();
    put_at(file, kLength, length);
    CHECK(error_of(ProgramFile::open(file_of(file))) == "no error");
    const Findings findings = findings_of(file);
    CHECK(findings.ok());
    CHECK(exactly(lines_of(findings.warnings)) ==
          containing("where what is at 8 ends, found another object"));
  }
}

/// Returns the real program's flatbuffer with other segments, a header and `data` behind it.
std::string program_with(const std::vector<program::DataSegmentT>& segments, const std::string& data) {
  const std::string real = real_program();
  program::ProgramT object;
  program::GetProgram(real.data())->UnPackTo(&object);
  object.constant_segment->offsets = {0};
  object.execution_plan.resize(1);
  program::ExecutionPlanT& plan = *object.execution_plan[0];
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    auto* tensor = plan.values[i]->val.AsTensor();
    if (!tensor || tensor->allocation_info) continue;
    tensor->data_buffer_idx = 0;
    plan.inputs.push_back(static_cast<std::int32_t>(i));
  }
  object.segments.clear();
  for (const auto& segment : segments) {
    object.segments.push_back(std::make_unique<program::DataSegmentT>(segment));
  }
  flatbuffers::FlatBufferBuilder builder;
  program::FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  std::string out = finished(builder);
  constexpr std::uint32_t kHeader = 32;
  put_at(out, 0, get_at<std::uint32_t>(out, 0) + kHeader);
  out.insert(8, std::string(kHeader, '\0'));
  out.replace(8, 4, "eh00");
  put_at(out, kLength, kHeader);
  put_at(out, kProgramSize, std::uint64_t{out.size()});
  out.resize((out.size() + 127) / 128 * 128);
  put_at(out, kSegmentBase, std::uint64_t{out.size()});
  put_at(out, kSegmentSize, std::uint64_t{data.size()});
  return out + data;
}

program::DataSegmentT segment(std::uint64_t offset, std::uint64_t size) {
  program::DataSegmentT out;
  out.offset = offset;
  out.size = size;
  return out;
}

TEST_CASE("a segment that is not inside the file is found at its table, also where sums overflow") {
  const std::string data(1000, 'a');
  const std::string sample = program_with({segment(1, 1)}, data);
  const auto base = get_at<std::uint64_t>(sample, kSegmentBase);
  struct Row {
    std::uint64_t offset, size;
  };
  for (const Row& row :
       {Row{0, 1001}, Row{1, 1000}, Row{1000, 1}, Row{1001, 1}, Row{kTop, 1000}, Row{kMost64, 1000},
        Row{1, kMost64}, Row{kMost64 - base + 1, 1}, Row{kMost64 - base, 1}, Row{kTop, kTop}}) {
    CAPTURE(row.offset);
    CAPTURE(row.size);
    const std::string file = program_with({segment(row.offset, row.size)}, data);
    REQUIRE(get_at<std::uint64_t>(file, kSegmentBase) == base);
    const std::size_t table = position_of(file, program::GetProgram(file.data())->segments()->Get(0));
    CHECK(lines_of(findings_of(file).errors) ==
          text("bad: offset {}: expected a segment inside the file's {} bytes, found {} bytes from {} + the "
               "base offset {} on\n",
               table, file.size(), row.size, row.offset, base));
    const auto opened = ProgramFile::open(file_of(file));
    REQUIRE(opened);
    CHECK(code_of(opened->segments()) == "kCorrupt");
    CHECK(code_of(inspect(file_of(file))) == "kCorrupt");
  }
}

TEST_CASE("segments in any order are fine, and what lies before, between, behind or on them is warned of") {
  const std::string a(100, 'a');
  const std::string data = a + std::string(28, '\0') + std::string(50, 'b');
  const auto on_each_other = [](std::uint64_t at, std::uint64_t end) {
    return text(
        "offset {}: expected no segment before offset {}, where what comes before it ends, found 50 "
        "bytes of one",
        at, end);
  };
  const auto padding = [](std::uint64_t at, int found) {
    return text("offset {}: expected zero, in the padding before a segment, found {}", at, found);
  };
  struct Row {
    std::vector<program::DataSegmentT> segments;
    std::string bytes;
    std::function<std::string(std::uint64_t base)> warnings;
    std::function<void(std::string& file, std::uint64_t base)> change = {};
  };
  const auto none = [](std::uint64_t) { return std::string(); };
  const auto put = [](Field field, auto value_of) {
    return [=](std::string& file, std::uint64_t base) { put_at(file, field, std::uint64_t{value_of(base)}); };
  };
  const Row rows[] = {
      {{segment(0, 100), segment(0, 0), segment(128, 16), segment(144, 34)}, data, none},
      {{segment(0, 100), segment(128, 50)},
       data,
       none,
       put(kProgramSize, [](std::uint64_t base) { return base; })},
      {{segment(128, 50), segment(0, 100)}, data, none},
      {{segment(0, 129), segment(128, 50)},
       data,
       [&](std::uint64_t base) { return on_each_other(base + 128, base + 129); }},
      {{segment(0, 100), segment(0, 50)},
       a,
       [&](std::uint64_t base) { return on_each_other(base, base + 100); }},
      {{segment(0, 100), segment(128, 50)},
       std::string(110, 'a') + data.substr(110),
       [&](std::uint64_t base) { return padding(base + 100, 97); }},
      {{segment(0, 100)},
       a,
       [](std::uint64_t base) {
         return text("offset 32: expected a segment data size that reaches to {} at least, found 99",
                     base + 100);
       },
       put(kSegmentSize, [](std::uint64_t) { return 99U; })},
      {{segment(0, 100)},
       a,
       [&](std::uint64_t base) { return padding(base - 1, 120); },
       [](std::string& file, std::uint64_t base) { put_at(file, base - 1, 'x'); }},
      {{segment(8, 92)},
       std::string(8, '\0') + std::string(92, 'a'),
       [](std::uint64_t base) {
         return text(
             "offset {}: expected a segment at a multiple of 16, found one that is not\nbad: offset {}: "
             "expected the end of the program, found 10 bytes that nothing refers to",
             base + 8, base + 100);
       },
       [](std::string& file, std::uint64_t) { file += "0123456789"; }},
  };
  for (const Row& row : rows) {
    std::string file = program_with(row.segments, row.bytes);
    const auto base = get_at<std::uint64_t>(file, kSegmentBase);
    if (row.change) row.change(file, base);
    const std::string warnings = row.warnings(base);
    CHECK(lines_of(findings_of(file).errors).empty());
    CHECK(lines_of(findings_of(file).warnings) == (warnings.empty() ? "" : "bad: " + warnings + "\n"));
    CHECK(error_of(inspect(file_of(file))) == "no error");
  }
}

TEST_CASE("the alignment of segments is the largest power of two, up to 65536, that their places show") {
  struct Row {
    std::vector<SegmentInfo> segments;  // offsets and sizes
    std::uint64_t alignment;
  };
  for (const Row& row :
       {Row{{}, 128}, Row{{{3 * 65536, 1, ""}}, 128}, Row{{{192, 1, ""}}, 64},
        Row{{{65536, 1, ""}, {1 << 20, 9, ""}}, 65536}, Row{{{256, 1, ""}, {8, 0, ""}, {768, 2, ""}}, 256},
        Row{{{0, 1, ""}, {48, 1, ""}}, 16}}) {
    CAPTURE(row.alignment);
    CHECK(observed_alignment(row.segments) == row.alignment);
  }
}

TEST_CASE("a header at the end of a file is read, and none is in a shorter file") {
  std::string file(40, '\0');
  file.replace(kMagic, 4, "eh00");
  put_at(file, kLength, 24U);
  put_at(file, kProgramSize, std::uint64_t{40});
  CHECK(read_extended_header(file_of(file), "bad")->length == 24);
  CHECK(read_extended_header(file_of(file.substr(0, 39)), "bad")->length == 0);
  CHECK(code_of(read_extended_header(failing(40, 8), "bad")) == "kIo");
}

TEST_CASE("segments without an extended header are found") {
  std::string file = real_program();
  std::fill_n(file.begin() + 8, 32,
              '\0');  // now the segment is a part of the flatbuffer that nothing refers to
  CHECK(lines_of(findings_of(file).errors) ==
        "bad: offset 8: expected an extended header, as there are segments, found none\n");
  REQUIRE(findings_of(file).warnings.size() == 1);
  CHECK(exactly(findings_of(file).warnings[0].message) ==
        containing("expected zero, in the padding between objects"));
}

}  // namespace
}  // namespace etstream::extended_header_test
