// SPDX-License-Identifier: BSD-3-Clause
//
// The reports of diff() on real files, and on the same files with one thing changed.
#include "etstream/diff.h"

#include <doctest/doctest.h>

#include <limits>

#include "diffs.h"
#include "etstream/bundled_program.h"
#include "etstream/program_plan.h"
#include "etstream/program_weights.h"
#include "file_bytes.h"
#include "files/diff_list.h"
#include "files/origins/made_program.h"
#include "program_generated.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_paths.h"

namespace etstream::diff_test {
namespace {

std::string real_tensor_data() { return content_of(kGoldenDir + "/tensor_data/expected.ptd"); }

std::string laid_out(const std::string& program, const ProgramPlanOptions& options) {
  const auto opened = ProgramFile::open(file_of(program));
  const auto layout = plan(*opened, options);
  REQUIRE(layout);
  return written(*layout);
}

TEST_CASE("a file is the same as itself") {
  for (const std::string& file : {real_program(), real_bundle(), real_tensor_data()}) {
    const FileDiff found = diff_of(file, file);
    CHECK(found.same_bytes);
    CHECK(found.same_content);
    CHECK(found.differences.empty());
  }
}

TEST_CASE("a program under another layout has the same content, and only places differ") {
  const FileDiff found = diff_of(real_program(), laid_out(real_program(), {.segment_alignment = 4096}));
  CHECK_FALSE(found.same_bytes);
  CHECK(found.same_content);
  CHECK(lines_of(found) == "layout segment 0: at 2560 | at 4096\n");
}

TEST_CASE("bytes that nothing refers to are told where nothing else differs") {
  const FileDiff found = diff_of(real_program(), real_program() + "x");
  CHECK(found.same_content);
  CHECK(lines_of(found) == "layout file: 23400 bytes, which differ from byte 23400 on | 23401 bytes\n");
}

TEST_CASE("initial states that differ are told by their names") {
  const auto with = [](char byte) {
    return made::file(
        {.constants = {
             {std::string(16, byte), {4}, "state", ScalarType::kFloat32, made::Place::kInitialState}}});
  };
  CHECK(lines_of(diff_of(with('a'), with('b'))) ==
        "content mutable 'state': float32 [4], 16 bytes, which differ from byte 0 on | float32 [4], 16 "
        "bytes\n");
}

TEST_CASE("a changed weight is found under any layout, once") {
  std::string changed = real_program();
  changed[changed.size() - 4] = static_cast<char>(changed[changed.size() - 4] ^ 1);
  const FileDiff found = diff_of(real_program(), changed);
  CHECK_FALSE(found.same_content);
  CHECK(
      lines_of(found) ==
      "content constant 4: float32 [10], 40 bytes, which differ from byte 36 on | float32 [10], 40 bytes\n");
  REQUIRE(found.differences.front().elements);
  CHECK(found.differences.front().elements->elements == 10);
  CHECK(found.differences.front().elements->equal == 9);
  const FileDiff moved = diff_of(real_program(), laid_out(changed, {.segment_alignment = 4096}));
  CHECK_FALSE(moved.same_content);
  CHECK(moved.differences.size() == 2);
}

TEST_CASE("a renamed operator and another instruction are content") {
  std::string changed = real_program();
  changed.replace(changed.find("aten::relu"), 10, "aten::gelu");
  const std::string lines = lines_of(diff_of(real_program(), changed));
  CHECK(lines ==
        "content method 'forward': operator aten::gelu.out:  | 1 call\n"
        "content method 'forward': operator aten::relu.out: 1 call | \n"
        "content method 'forward': call 1: aten::relu.out [5, 20, 20] | aten::gelu.out [5, 20, 20]\n");
  changed = real_program();
  changed.replace(changed.find("forward"), 7, "Forward");
  CHECK(lines_of(diff_of(real_program(), changed)) ==
        "content method 'Forward':  | there\ncontent method 'forward': there | \n");
}

TEST_CASE("delegates that one program has more than the other are told by their backends") {
  const auto with = [](std::size_t count) {
    return made::file(
        {.delegates = std::vector<std::pair<std::string, std::string>>(count, {"Test", "data"})});
  };
  CHECK(lines_of(diff_of(with(1), with(2))).starts_with("content method 'forward': delegate 1:  | Test\n"));
  CHECK(lines_of(diff_of(with(2), with(1))).starts_with("content method 'forward': delegate 1: Test | \n"));
}

TEST_CASE("a constant without a name that got another number is the same") {
  const auto with = [](const std::vector<char>& fills) {
    made::Program program;
    for (const char fill : fills) {
      program.constants.push_back({std::string(16, fill),
                                   {fill == 'c' ? 2 : 4},
                                   "",
                                   fill == 'c' ? ScalarType::kFloat64 : ScalarType::kFloat32});
    }
    return made::file(program);
  };
  CHECK(exactly(lines_of(diff_of(with({'a'}), with({'b', 'a'})))) ==
        exactly("content method 'forward': number of values: 2 | 3\n"
                "content constant 1:  | float32 [4]\n"
                "layout flatbuffer: 440 bytes | 496 bytes\n"
                "layout segment 0: 16 bytes of constants | 32 bytes of constants\n"));
  CHECK(exactly(lines_of(diff_of(with({'b', 'a'}), with({'a'})))) ==
        exactly("content method 'forward': number of values: 3 | 2\n"
                "content constant 1: float32 [4] | \n"
                "layout flatbuffer: 496 bytes | 440 bytes\n"
                "layout segment 0: 32 bytes of constants | 16 bytes of constants\n"));
  // One of another type is new too.
  CHECK(exactly(lines_of(diff_of(with({'a', 'b'}), with({'c', 'b', 'a'})))) ==
        exactly("content method 'forward': number of values: 3 | 4\n"
                "content method 'forward': value 1: float32 [4] constant [][] | float64 [2] constant [][]\n"
                "content constant 1:  | float64 [2]\n"
                "layout flatbuffer: 496 bytes | 560 bytes\n"
                "layout segment 0: 32 bytes of constants | 48 bytes of constants\n"
                "layout segment 0: at 512 | at 640\n"));
}

TEST_CASE("places in planned memory that differ are told, where nothing else does") {
  const auto planned_at = [](std::uint32_t first, std::uint32_t second) {
    std::string file = real_program();
    std::vector<std::uint32_t> left = {second, first};
    for (const auto* value : *program::GetProgram(file.data())->execution_plan()->Get(0)->values()) {
      const auto* tensor = value->val_as_Tensor();
      const auto* place = tensor ? tensor->allocation_info() : nullptr;
      if (left.empty() || !place || place->memory_offset_low() == 0) continue;
      put_at(file, field_of(file, position_of(file, place), program::AllocationDetails::VT_MEMORY_OFFSET_LOW),
             left.back());
      left.pop_back();
    }
    return file;
  };
  CHECK(lines_of(diff_of(planned_at(16, 32), planned_at(16, 48))) ==
        "content method 'forward': memory plan: value 20: memory 1 at 32 | memory 1 at 48\n");
  CHECK(lines_of(diff_of(planned_at(16, 32), planned_at(64, 48))) ==
        "content method 'forward': memory plan: 2 values, the first of them 4: memory 1 at 16 | memory 1 at "
        "64\n");
}

TEST_CASE("bundles of both formats are compared by program, suite, case and value") {
  const auto bundle = BundledProgramFile::open(file_of(real_bundle()));
  const std::string segmented = written(*bundle->plan_as(BundleFormat::kSegmented));
  const FileDiff formats = diff_of(real_bundle(), segmented);
  CHECK(formats.same_content);
  CHECK(lines_of(formats).starts_with("layout format: bp08 | segmented\nlayout program: at "));
  auto description = bundle->read().value();
  auto& cases = description.method_test_suites[1].test_cases;
  cases[0].inputs[1] = std::int64_t{77};
  cases.pop_back();
  cases[0].expected_outputs.clear();
  auto& tensor = std::get<Tensor>(cases[0].inputs[0]);
  tensor.data = ByteSource::zeros(tensor.data.size());
  const FileDiff found = diff_of(segmented, written(*plan(description, {.unchecked = true})));
  CHECK_FALSE(found.same_content);
  const std::string lines = lines_of(found);
  CAPTURE(lines);
  CHECK(lines.find("content test suite of 'scale': test cases: 2 | 1\n") != std::string::npos);
  CHECK(lines.find("content test suite of 'scale': case 0: number of expected outputs: 1 | 0\n") !=
        std::string::npos);
  CHECK(lines.find("content test suite of 'scale': case 0: input 1: integer 2 | integer 77\n") !=
        std::string::npos);
  CHECK(
      lines.find("case 0: input 0: float32 [3, 5] in order [0, 1], 60 bytes, which differ from byte 0 on") !=
      std::string::npos);
}

TEST_CASE("tensor data is compared by key") {
  std::string changed = real_tensor_data();
  changed.replace(changed.find("tied.weight"), 11, "tied.WEIGHT");
  changed[changed.size() - 1] = 9;
  CHECK(lines_of(diff_of(real_tensor_data(), changed)) ==
        "content 'scale': int32 [] in order [], 4 bytes, which differ from byte 3 on | int32 [] in order [], "
        "4 bytes\n"
        "content 'tied.WEIGHT':  | float32 [3, 4] in order [0, 1]\n"
        "content 'tied.weight': float32 [3, 4] in order [0, 1] | \n");
}

TEST_CASE("weights within the tolerance count as equal, and nothing else does") {
  std::string changed = real_program();
  changed[changed.size() - 4] = static_cast<char>(changed[changed.size() - 4] ^ 1);
  const Tolerance tolerance{.absolute = 1e-3, .relative = 0};
  const FileDiff found = diff_of(real_program(), changed, {.tolerance = tolerance});
  CHECK_FALSE(found.same_content);
  CHECK(found.same_within_tolerance);
  CHECK(lines_of(found).starts_with("tolerated constant 4: "));
  CHECK_FALSE(diff_of(real_program(), changed, {.tolerance = Tolerance{0, 0}}).same_within_tolerance);
  CHECK_FALSE(diff_of(real_program(), changed).same_within_tolerance);
  changed.replace(changed.find("aten::relu"), 10, "aten::gelu");
  CHECK_FALSE(diff_of(real_program(), changed, {.tolerance = tolerance}).same_within_tolerance);
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const DiffOptions options{.tolerance = Tolerance{.absolute = bad}};
    CHECK(code_of(diff(file_of(real_program()), file_of(changed), options)) == "kInvalidArgument");
    // Either number may be bad, and the files may be the same.
    for (const Tolerance& either :
         {Tolerance{.absolute = bad, .relative = 0}, Tolerance{.absolute = 0, .relative = bad}}) {
      CHECK(code_of(diff(file_of(real_program()), file_of(real_program()), {.tolerance = either})) ==
            "kInvalidArgument");
    }
  }
}

TEST_CASE("elements of four bits are compared one by one") {
  constexpr std::int32_t kBytes = 5000;  // more than are looked at together
  const auto piece = [](const std::string& bytes, bool is_of_nibbles) {
    NamedPiece out{"name", "", file_of(bytes)};
    out.layout = TensorLayout{ScalarType::kUInt8, {kBytes}, {0}};
    out.is_of_nibbles = is_of_nibbles;
    return out;
  };
  const std::string was(kBytes, '\x21');
  for (const std::size_t at : {0U, 2U, 4095U, 4999U}) {
    CAPTURE(at);
    std::string low = was;
    std::string high = was;
    low[at] = '\x23';
    high[at] = '\x51';
    ElementComparisons comparisons(Tolerance{.absolute = 2, .relative = 0});
    const auto lows = comparisons.compare(piece(was, true), piece(low, true)).value();
    REQUIRE(lows);
    CHECK(lows->difference.elements == 2 * kBytes);
    CHECK(lows->difference.equal == 2 * kBytes - 1);
    CHECK(lows->difference.largest == 2);
    CHECK(lows->passes);
    const auto highs = comparisons.compare(piece(was, true), piece(high, true)).value();
    REQUIRE(highs);
    CHECK(highs->difference.largest == 3);
    CHECK_FALSE(highs->passes);
    const auto bytes = comparisons.compare(piece(was, false), piece(high, false)).value();
    REQUIRE(bytes);
    CHECK(bytes->difference.elements == kBytes);
    CHECK(bytes->difference.largest == 48);
    CHECK_FALSE(comparisons.compare(piece(was, true), piece(high, false)).value());
    low[at] = '\x20';
    const auto by_one = comparisons.compare(piece(was, true), piece(low, true)).value();
    REQUIRE(by_one);
    CHECK(by_one->difference.largest == 1);
  }
  // Elements that do not fill their data, or are not known, are not compared.
  ElementComparisons comparisons(std::nullopt);
  const std::string less = was.substr(1);
  CHECK_FALSE(comparisons.compare(piece(less, true), piece(less, true)).value());
  CHECK_FALSE(comparisons.compare(piece(was, true), piece(less, true)).value());
  CHECK_FALSE(comparisons.compare(piece(less, true), piece(was, true)).value());
  NamedPiece unknown = piece(was, false);
  unknown.layout.reset();
  CHECK_FALSE(comparisons.compare(unknown, unknown).value());
}

TEST_CASE("without a tolerance, no part of a complex number may differ") {
  const auto piece = [](float imaginary) {
    const std::vector<float> number = {std::numeric_limits<float>::infinity(), imaginary};
    NamedPiece out{"name", "", file_of(made::bytes_of_numbers(number))};
    out.layout = made::layout_of(ScalarType::kComplex64, {1});
    return out;
  };
  ElementComparisons comparisons(std::nullopt);
  const auto found = comparisons.compare(piece(1), piece(1.5F)).value();
  REQUIRE(found);
  CHECK(found->difference.equal == 0);
  CHECK(found->difference.not_finite == 1);
}

TEST_CASE("all differences count, and the first thousand are kept") {
  std::vector<DiffEntry> found;
  const DiffOptions options;
  DiffList list(found, options);
  CHECK(list.is_same());
  for (int i = 0; i < 1001; ++i) list.compare(std::to_string(i), "a", i == 1000 ? "a" : "b");
  list.compare("last", "", "b");
  CHECK(found.size() == 1000);
  CHECK(found.back().subject == "999");
  CHECK(list.has_content());
  CHECK(list.within("w").is_same());
}

TEST_CASE("names lie beside a file, in place of its ending") {
  std::string path;
  const auto opened = [&](ErrorCode code) {
    return [&path, code](const std::string& given) -> Result<ByteSource> {
      path = given;
      return Error{code, "x"};
    };
  };
  for (const auto& [file, names] :
       {std::pair("d.e/a", "d.e/a"), std::pair("d/.x", "d/.x"), std::pair("d/a.x", "d/a"),
        std::pair("a.b.pte", "a.b"), std::pair("a", "a"), std::pair(".x", ".x"),
        std::pair("a.pte.etz", "a")}) {
    CHECK(read_key_names_beside(file, opened(ErrorCode::kNotFound)).value().empty());
    CHECK(path == std::string(names) + ".names.json");
  }
  CHECK(error_of(read_key_names_beside("a.pte", opened(ErrorCode::kIo))) == "kIo: x");
}

TEST_CASE("names are read from up to 64 MiB") {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  CHECK(code_of(read_key_names(repeated('x', kMost))) == "kCorrupt");
  CHECK(error_of(read_key_names(repeated('x', kMost + 1))) ==
        "kTooLarge: fill: expected at most 67108864 bytes of names, found 67108865");
}

TEST_CASE("keys are told by the names that they stand for") {
  std::string changed = real_tensor_data();
  changed.replace(changed.find("tied.weight"), 11, "tied.WEIGHT");
  const FileDiff found = diff_of(real_tensor_data(), changed,
                                 {.names_a = {{"tied.weight", "one"}}, .names_b = {{"tied.WEIGHT", "one"}}});
  CHECK(lines_of(found) == "content key of 'one': 'tied.weight' | 'tied.WEIGHT'\n");
}

TEST_CASE("a file that changes while it is compared is an error") {
  const TemporaryFolder folder;
  put_file(folder / "a.pte", real_program());
  const ByteSource changed = ByteSource::file(folder / "a.pte").value();
  CHECK(diff(changed, file_of(real_program()))->same_bytes);
  put_file(folder / "a.pte", real_program() + "x");
  CHECK(code_of(diff(changed, file_of(real_program()))) == "kCorrupt");
  CHECK(code_of(diff(file_of(real_program()), changed)) == "kCorrupt");
}

TEST_CASE("files of two kinds, or damaged ones, are no difference but an error") {
  CHECK(error_of(diff(file_of(real_program()), file_of(real_bundle()))) == containing("kInvalidArgument"));
  CHECK(code_of(diff(file_of(real_program()), file_of("abc"))) == "kUnsupported");
  CHECK(code_of(diff(file_of(real_program()), file_of(real_program().substr(0, 3000)))) == "kCorrupt");
}

}  // namespace
}  // namespace etstream::diff_test
