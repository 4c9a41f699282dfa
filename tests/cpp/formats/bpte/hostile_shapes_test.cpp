// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles that are well-formed piece by piece, built to be deep, wide, or shared without end.
#include <doctest/doctest.h>
#include <flatbuffers/idl.h>

#include <chrono>
#include <functional>

#include "bundled_program_generated.h"
#include "etstream/bundled_program.h"
#include "etstream/inspect.h"
#include "file_bytes.h"
#include "flatbuffer/flatbuffer_verifier.h"
#include "flatbuffer/flatbuffer_view.h"
#include "flatbuffer/schema.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::hostile_shapes_test {
namespace {

namespace bp = etstream::bundled_program;

using Builder = flatbuffers::FlatBufferBuilder;
using Values = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<bp::Value>>>;
using Case = flatbuffers::Offset<bp::BundledMethodTestCase>;

std::string golden_program() {
  return content_of(kGoldenDir + "/sorted_suites_of_a_real_program/program.pte");
}

/// Ends a bundle of one suite, "scale", of the golden program.
std::string bundle_of(Builder& builder, flatbuffers::Offset<flatbuffers::Vector<Case>> cases) {
  const auto name = builder.CreateString("scale");
  const auto suite = bp::CreateBundledMethodTestSuite(builder, name, cases);
  const auto suites = builder.CreateVector(&suite, 1);
  const std::string bytes = golden_program();
  builder.ForceVectorAlignment(bytes.size(), 1, 32);
  const auto program =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  bp::FinishBundledProgramBuffer(builder, bp::CreateBundledProgram(builder, 2, suites, program));
  return finished(builder);
}

std::string bundle_of_inputs(Builder& builder, Values inputs) {
  const auto outputs = builder.CreateVector(std::vector<flatbuffers::Offset<bp::Value>>());
  const auto test_case = bp::CreateBundledMethodTestCase(builder, inputs, outputs);
  return bundle_of(builder, builder.CreateVector(&test_case, 1));
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Schema schema_of(const char* text) {
  flatbuffers::IDLOptions options;
  options.binary_schema_builtins = true;
  flatbuffers::Parser parser(options);
  REQUIRE(parser.Parse(text));
  parser.Serialize();
  auto schema = Schema::from_binary(
      std::as_bytes(std::span(parser.builder_.GetBufferPointer(), parser.builder_.GetSize())));
  REQUIRE_MESSAGE(schema, schema.error().message);
  return std::move(schema).value();
}

TEST_CASE("a million tables, more than FlatBuffers' own verifier takes, are verified") {
  Builder builder;
  std::vector<flatbuffers::Offset<bp::Value>> values;
  for (int i = 0; i < 1'000'001; ++i) values.push_back(bp::CreateValue(builder));
  const std::string file = bundle_of_inputs(builder, builder.CreateVector(values));
  CHECK(lines_of(findings_of(file).errors) ==
        "method 'scale', test case 0: 1000001 inputs given, the method has 4\n");
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  CHECK_FALSE(bp::VerifyBundledProgramBuffer(verifier));
}

TEST_CASE("a long vtable is looked through once for all tables that share it") {
  const Schema schema = schema_of("table Leaf {} table Nest { leaves:[Leaf]; } root_type Nest;");
  Builder builder;
  const flatbuffers::Offset<flatbuffers::Table> leaf(builder.EndTable(builder.StartTable()));
  const auto leaves = builder.CreateVector(std::vector(100'000, leaf));
  const auto start = builder.StartTable();
  builder.AddOffset(4, leaves);
  builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)), "NEST");
  std::string file = finished(builder);
  // The leaf gets a vtable at the end, with all fields absent.
  constexpr std::uint16_t kLongest = 65534;
  const std::size_t leaf_at = builder.GetSize() - leaf.o;
  const std::size_t vtable_at = file.size();
  put_at(file, leaf_at, static_cast<std::int32_t>(leaf_at) - static_cast<std::int32_t>(vtable_at));
  file.resize(vtable_at + kLongest);
  put_at(file, vtable_at, kLongest);
  const auto view = FlatbufferView::open(schema, file_of(file), "bad");
  REQUIRE_MESSAGE(view, view.error().message);
  CHECK(seconds([&] { CHECK(error_of(find_unknown_field(*view)) == "no error"); }) < 10);
}

TEST_CASE("a vector whose elements are all the same list is refused at once, not walked") {
  constexpr int kEach = 20'000;  // squared, and both times 4 more bytes, were it walked
  Builder builder;
  const auto value = bp::CreateValue(builder);
  const Values values = builder.CreateVector(std::vector<flatbuffers::Offset<bp::Value>>(kEach, value));
  const Case test_case = bp::CreateBundledMethodTestCase(builder, values, values);
  const std::string file = bundle_of(builder, builder.CreateVector(std::vector<Case>(kEach, test_case)));
  for (const auto& read : {std::function<doctest::String()>([&] { return error_of(inspect(file_of(file))); }),
                           std::function<doctest::String()>(
                               [&] { return error_of(BundledProgramFile::open(file_of(file))); })}) {
    doctest::String error;
    const double taken = seconds([&] { error = read(); });
    CHECK(taken < 5);
    CHECK(error == containing("kCorrupt: bad: offset "));
    CHECK(error ==
          containing("expected objects that are shared at most 4 times on average, found more sharing"));
  }
}

}  // namespace
}  // namespace etstream::hostile_shapes_test
