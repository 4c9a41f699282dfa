// SPDX-License-Identifier: BSD-3-Clause
//
// Files that FlatBuffers' verifier and ExecuTorch accept though no builder writes them so. They are read, and
// verify() warns. Then random damage: whatever FlatBuffers' verifier accepts is read, except for the cases
// that are named here.
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <random>

#include "bundled_program_bfbs_generated.h"
#include "bundled_program_generated.h"
#include "core/base/text.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/tensor_data.h"
#include "file_bytes.h"
#include "flat_tensor_bfbs_generated.h"
#include "flat_tensor_generated.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/schema.h"
#include "program_bfbs_generated.h"
#include "program_generated.h"
#include "random_schema.h"
#include "seeded_random.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::dubious_files_test {
namespace {

namespace bp = etstream::bundled_program;

bool flatbuffers_takes_bundle(const std::string& file) {
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  return bp::VerifyBundledProgramBuffer(verifier);
}

/// The places of objects in the real bundle.
struct Places {
  explicit Places(const std::string& file) {
    const auto* bundle = bp::GetBundledProgram(file.data());
    const auto* suite = bundle->method_test_suites()->Get(0);
    root = position_of(file, bundle);
    method_name = position_of(file, suite->method_name());
    tensor = position_of(
        file, bundle->method_test_suites()->Get(1)->test_cases()->Get(0)->inputs()->Get(0)->val_as_Tensor());
  }
  std::size_t root, method_name, tensor;
};

struct Row {
  std::string promise;
  /// Damages the file and returns the expected warning, after the file's name.
  std::function<std::string(std::string&, const Places&)> spoil;
};

void check_all_read(const std::vector<Row>& rows) {
  const std::vector<Finding> usual = findings_of(real_bundle()).warnings;
  for (const Row& row : rows) {
    CAPTURE(row.promise);
    std::string file = real_bundle();
    const std::string expected = row.spoil(file, Places(file));
    REQUIRE(flatbuffers_takes_bundle(file));
    const Findings findings = findings_of(file);
    CHECK(lines_of(findings.errors).empty());
    std::vector<Finding> warnings = findings.warnings;
    std::erase_if(warnings, [&](const Finding& warning) {
      return std::any_of(usual.begin(), usual.end(),
                         [&](const Finding& one) { return one.message == warning.message; });
    });
    CHECK(lines_of(warnings) == (expected.empty() ? "" : "bad: " + expected + "\n"));
    const auto opened = BundledProgramFile::open(file_of(file));
    REQUIRE(opened);
    CHECK(error_of(opened->read()) == "no error");
    CHECK(error_of(inspect(file_of(file))) == "no error");
  }
}

std::string at(std::size_t offset, const std::string& expected, const std::string& found) {
  return text("offset {}: expected {}, found {}", offset, expected, found);
}

TEST_CASE("the size that a vtable declares for a table does not matter, be it too small or too large") {
  std::vector<Row> rows;
  for (const std::uint16_t size : std::vector<std::uint16_t>{0, 3, 4, 8, 17, 24, 400, 0xffff}) {
    for (std::size_t Places::*place : {&Places::root, &Places::tensor}) {
      rows.push_back({text("size {}", size), [=](std::string& file, const Places& places) {
                        put_at(file, vtable_of(file, places.*place) + 2, size);
                        return "";
                      }});
    }
  }
  check_all_read(rows);
}

TEST_CASE("padding that is not zero is warned of, wherever it is") {
  const std::string expected = "zero, in the padding between objects";
  const auto pad = [&](std::size_t Places::*place, std::int64_t shift) {
    return [=](std::string& file, const Places& places) {
      const auto position = static_cast<std::size_t>(static_cast<std::int64_t>(places.*place) + shift);
      REQUIRE(get_at<char>(file, position) == 0);
      put_at(file, position, std::uint8_t{200});
      return at(position, expected, "200");
    };
  };
  check_all_read({
      {"after the identifier",
       [&](std::string& file, const Places&) {
         put_at(file, 8, 'x');
         return at(8, expected, "120");
       }},
      {"before the root's vtable", pad(&Places::root, -12)},
      {"after the last string", pad(&Places::method_name, 10)},
      {"behind the end of the last object", pad(&Places::method_name, 11)},
  });
}

TEST_CASE("what is behind the last object is warned of unless it is zeros up to a multiple of four") {
  check_all_read({
      {"zeros",
       [](std::string& file, const Places&) {
         file += std::string(100, '\0');
         return std::string();
       }},
      {"one zero",
       [](std::string& file, const Places&) {
         file += '\0';
         return at(file.size(), "an end at a multiple of 4, as builders align it",
                   text("{} bytes", file.size()));
       }},
      {"another byte",
       [](std::string& file, const Places&) {
         file += std::string(100, '\0') + "x" + std::string(3, '\0');
         return at(file.size() - 4, "zero, in the padding between objects", "120");
       }},
  });
}

TEST_CASE("objects that lie on each other are warned of") {
  check_all_read({{"a vtable that reaches into its table", [](std::string& file, const Places& places) {
                     const std::size_t vtable = vtable_of(file, places.root);
                     put_at(file, vtable, std::uint16_t{40});
                     REQUIRE(vtable + 10 == places.root);
                     const std::string overlap =
                         at(places.root,
                            text("nothing before offset {}, where what is at {} ends", vtable + 40, vtable),
                            "another object");
                     return overlap + "\nbad: " +
                            at(vtable + 10, "the 3 fields of BundledProgram that the schema has",
                               "field 3, which is not read");
                   }}});
}

TEST_CASE("a program with a field that the schema lacks is read, with a warning, but not written again") {
  std::string file = real_program();
  const std::size_t table = position_of(file, program::GetProgram(file.data())->segments()->Get(0));
  const std::size_t vtable = vtable_of(file, table);
  REQUIRE(get_at<std::uint16_t>(file, vtable) == program::DataSegment::VT_SIZE + 2);
  REQUIRE(get_at<std::uint16_t>(file, vtable + program::DataSegment::VT_SIZE + 2) != 0);
  put_at(file, vtable, std::uint16_t{program::DataSegment::VT_SIZE + 4});
  const std::string unknown =
      "bad: " + at(vtable + program::DataSegment::VT_SIZE + 2,
                   "the 2 fields of DataSegment that the schema has", "field 2, which is not read");
  const Findings findings = findings_of(file);
  CHECK(findings.ok());
  CHECK(exactly(lines_of(findings.warnings)) == containing(unknown.c_str()));
  const auto opened = ProgramFile::open(file_of(file));
  REQUIRE(opened);
  CHECK(written(plan(*opened).value()) == file);
  CHECK(error_of(plan(*opened, {.segment_alignment = 4096})) == containing("kUnsupported: " + unknown));
}

std::string old_file(const std::string& name) { return content_of(kGoldenDir + "/old_flatbuffers/" + name); }

TEST_CASE("files of flatbuffers before 25.12.19, whose tables of different sizes share vtables, are sound") {
  for (const char* name : {"program.pte", "bundle.bpte"}) {
    CAPTURE(name);
    const std::string file = old_file(name);
    const Findings findings = findings_of(file);
    CHECK(lines_of(findings.errors).empty());
    CHECK(lines_of(findings.warnings).empty());
    CHECK(error_of(inspect(file_of(file))) == "no error");
  }
}

bool flatbuffers_takes_program(const std::string& file) {
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  return program::VerifyProgramBuffer(verifier);
}

bool flatbuffers_takes_tensor_data(const std::string& file) {
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  return flat_tensor::VerifyFlatTensorBuffer(verifier);
}

/// Verifies all of a flatbuffer, as opening does.
template <class BinarySchema>
std::string refusal(const std::string& file) {
  static const Schema kSchema =
      Schema::from_binary(std::as_bytes(std::span(BinarySchema::data(), BinarySchema::size()))).value();
  const auto view = FlatbufferView::open(kSchema, file_of(file), "bad");
  if (!view) return view.error().message;
  const auto verified = verify_flatbuffer(*view);
  return verified ? "" : verified.error().message;
}

/// The reasons for which verify_flatbuffer() refuses files that FlatBuffers' verifier accepts.
const char* const kReasons[] = {"a known type of the union", "a value of the union", "more sharing",
                                "a name without a zero byte", "a name that is not empty"};

TEST_CASE("a flatbuffer whose root is not inside it is not opened") {
  using Binary = bundled_program::BundledProgramBinarySchema;
  const auto schema = Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size())));
  std::string file = real_bundle();
  put_at(file, 0, std::uint32_t{0x40000000});
  CHECK(error_of(FlatbufferView::open(schema.value(), file_of(file), "bad")) ==
        containing("bad: offset 0: "));
  CHECK(error_of(FlatbufferView::open(schema.value(), file_of({"\4\0\0\0BP08", 8}), "bad")) ==
        containing("bad: offset 4: expected the distance to a vtable that is even"));
  CHECK(
      error_of(FlatbufferView::open(schema.value(), file_of({"\x08\0\0\0BP08abc", 11}), "bad")) ==
      containing("bad: offset 0: expected an offset to a multiple of 4 further on inside the file, found 8"));
  CHECK(code_of(FlatbufferView::open(schema.value(), failing(100, 0), "bad")) == "kIo");
}

TEST_CASE("a size before a flatbuffer is followed by a root that is inside it") {
  const auto without = [](const std::string& bytes) { return without_size_prefix(file_of(bytes), "bad"); };
  CHECK(error_of(without(std::string(11, '\0'))) ==
        exactly("kCorrupt: bad: expected a flatbuffer with its size before it, found 11 bytes"));
  CHECK(text_of(without({"\x08\0\0\0\x08\0\0\0ABCD", 12}).value()) == std::string("\x0c\0\0\0ABCDABCD", 12));
  CHECK(error_of(without({"\x08\0\0\0\x09\0\0\0ABCD", 12})) ==
        exactly("kCorrupt: bad: offset 4: expected an offset to a table inside the file, found 9"));
  CHECK(code_of(without_size_prefix(failing(12, 0), "bad")) == "kIo");
}

TEST_CASE("places that no builder chooses are read as FlatBuffers reads them") {
  using Binary = bundled_program::BundledProgramBinarySchema;
  const auto schema = Schema::from_binary(std::as_bytes(std::span(Binary::data(), Binary::size())));
  std::string file = real_bundle();
  const Places places(file);
  put_at(file, places.root, static_cast<std::int32_t>(places.root));
  CHECK(error_of(FlatbufferView::open(schema.value(), file_of(file), "bad")) == "no error");  // a vtable at 0

  file = real_bundle();
  const auto* suites = bp::GetBundledProgram(file.data())->method_test_suites();
  const std::size_t value = position_of(file, suites->Get(1)->test_cases()->Get(0)->inputs()->Get(0));
  put_at(file, position_of(file, suites) + 4, 0U);  // an element that leads to itself
  put_at(file, field_of(file, value, bp::Value::VT_VAL_TYPE), std::uint8_t{0});
  const auto with_value_at = [&](std::size_t target) {
    const std::size_t at = field_of(file, value, bp::Value::VT_VAL);
    put_at(file, at, static_cast<std::uint32_t>(target - at));
    return exactly(refusal<Binary>(file));
  };
  CHECK(with_value_at(file.size() - 1) == "");
  CHECK(with_value_at(file.size()) == containing("an offset to a multiple of 1 further on inside the file"));
}

TEST_CASE("the types of a vector of unions are one for each") {
  const auto schema = Schema::from_binary(
      testing::compile_schema("table A {} union U { A } table T { u: [U]; } root_type T;"));
  const auto verified = [&](const std::vector<std::uint8_t>& types) {
    flatbuffers::FlatBufferBuilder builder;
    const flatbuffers::Offset<flatbuffers::Table> member(builder.EndTable(builder.StartTable()));
    const auto members = builder.CreateVector(std::vector{member, member});
    const auto own = builder.CreateVector(types);
    const auto start = builder.StartTable();
    if (!types.empty()) builder.AddOffset(4, own);
    builder.AddOffset(6, members);
    builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)));
    const auto view = FlatbufferView::open(schema.value(), file_of(finished(builder)), "bad");
    REQUIRE(view);
    return error_of(verify_flatbuffer(*view));
  };
  CHECK(verified({1, 1}) == "no error");
  CHECK(verified({1, 0}) == "no error");
  CHECK(verified({}) == containing("expected T.u_type, found nothing"));
  CHECK(verified({1}) == containing("expected a type for each of the 2 unions in u, found 1"));
  CHECK(verified({1, 9}) == containing("expected a known type of the union T.u, found 9"));
}

TEST_CASE("a field that the schema lacks is told by its number") {
  const auto schema =
      Schema::from_binary(testing::compile_schema("table T { a: int; b: int = null; } root_type T;"));
  flatbuffers::FlatBufferBuilder builder;
  const auto start = builder.StartTable();
  builder.AddElement<std::int32_t>(4, 1, 0);
  builder.AddElement<std::int32_t>(10, 1, 0);
  builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)));
  const auto view = FlatbufferView::open(schema.value(), file_of(finished(builder)), "bad");
  REQUIRE(view);
  CHECK(view->scalar(view->root().value(), schema->root().fields[1]).value() == 0);
  const auto unknown = find_unknown_field(*view).value();
  REQUIRE(unknown);
  CHECK(
      unknown->message.ends_with("the 2 fields of T that the schema has, found field 3, which is not read"));
}

TEST_CASE("a vector whose elements lie unaligned is told, unless it has none") {
  const auto schema =
      Schema::from_binary(testing::compile_schema("table T { v: [long]; n: int; } root_type T;"));
  int unaligned = 0;
  for (const std::vector<std::uint32_t>& words : {std::vector<std::uint32_t>{1, 2}, {}}) {
    for (const bool has_number : {false, true}) {
      flatbuffers::FlatBufferBuilder builder;
      const auto vector = builder.CreateVector(words);
      const auto start = builder.StartTable();
      builder.AddOffset(4, vector);
      if (has_number) builder.AddElement<std::int32_t>(6, 1, 0);
      builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)));
      std::string file = finished(builder);
      const auto* root = flatbuffers::GetRoot<flatbuffers::Table>(file.data());
      const std::size_t position = position_of(file, root->GetPointer<const void*>(4));
      put_at(file, position, static_cast<std::uint32_t>(words.size() / 2));
      const auto view = FlatbufferView::open(schema.value(), file_of(file), "bad");
      REQUIRE(view);
      const std::vector<Error> flaws = find_flaws_of_layout(*view).value();
      if (words.empty() || (position + 4) % 8 == 0) {
        CHECK(flaws.empty());
        continue;
      }
      ++unaligned;
      REQUIRE(flaws.size() == 1);
      CHECK(flaws[0].message == "bad: " + at(position, "a vector whose elements lie at a multiple of 8",
                                             text("elements at {}", position + 4)));
    }
  }
  CHECK(unaligned == 1);
}

TEST_CASE("of files with random damage exactly those are read that FlatBuffers' verifier takes") {
  struct Kind {
    std::string file;
    bool (*flatbuffers_takes)(const std::string&);
    std::string (*refusal)(const std::string&);
  };
  const std::string program = old_file("program.pte");
  const std::string tensors = content_of(kGoldenDir + "/tensor_data/expected.ptd");
  const auto program_size = get_at<std::uint64_t>(program, 16);
  const auto tensors_size = get_at<std::uint64_t>(tensors, 16) + get_at<std::uint64_t>(tensors, 24);
  const Kind kinds[] = {
      {program.substr(0, program_size), flatbuffers_takes_program, refusal<program::ProgramBinarySchema>},
      {real_bundle(), flatbuffers_takes_bundle, refusal<bundled_program::BundledProgramBinarySchema>},
      {tensors.substr(0, tensors_size), flatbuffers_takes_tensor_data,
       refusal<flat_tensor::FlatTensorBinarySchema>}};
  std::mt19937 engine(7);  // NOLINT(cert-msc51-cpp,cert-msc32-c): the same damage each time
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  const auto below = [&](std::size_t limit) { return random() % static_cast<std::uint32_t>(limit); };
  const std::uint64_t damages = 2000 * testing::rounds();
  for (const Kind& kind : kinds) {
    std::map<std::string, std::uint64_t> tally;
    for (std::uint64_t i = 0; i < damages; ++i) {
      std::string file = kind.file;
      for (std::uint32_t changes = 1 + below(3); changes > 0; --changes) {
        // Offsets, sizes and types are small numbers.
        const std::size_t place = 8 + below(file.size() - 12) / 2 * 2;
        const std::uint32_t value = below(4) == 0 ? random() : below(64);
        if (below(2) == 0) {
          put_at(file, place, static_cast<std::uint16_t>(value));
        } else {
          put_at(file, place / 4 * 4, value);
        }
      }
      const std::string refusal = kind.refusal(file);
      const bool taken = kind.flatbuffers_takes(file);
      std::string reason = refusal.empty() ? "" : "other";
      for (const char* known : kReasons) {
        if (refusal.find(known) != std::string::npos) reason = known;
      }
      if (taken) ++tally[reason];
      if (taken ? reason == "other" : refusal.empty()) {
        FAIL_CHECK("damage " << i << ": " << refusal << ", FlatBuffers " << taken);
      }
    }
    for (const auto& [reason, count] : tally) MESSAGE("'" << reason << "': " << count);
    CHECK(40 * tally[""] > damages);
  }
}

}  // namespace
}  // namespace etstream::dubious_files_test
