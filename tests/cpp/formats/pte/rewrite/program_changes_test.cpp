// SPDX-License-Identifier: BSD-3-Clause
//
// Programs with changed content: cases that ExecuTorch's own models do not have, and errors.
#include "etstream/program_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "counted_bytes.h"
#include "file_bytes.h"
#include "files/origins/made_program.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::program_changes_test {
namespace {

using program::ProgramT;

/// Returns the real program with its constants in the flatbuffer, as older writers put them, and changed,
/// packed by FlatBuffers' own builder.
std::string older_program(const std::function<void(ProgramT&)>& change = {}) {
  ProgramT object;
  const std::string real = real_program();
  program::GetProgram(real.data())->UnPackTo(&object);
  const auto opened = ProgramFile::open(file_of(real));
  REQUIRE(opened);
  const SegmentInfo segment = opened->segments().value().at(0);
  const auto& offsets = object.constant_segment->offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t end = i + 1 < offsets.size() ? offsets[i + 1] : segment.size;
    const std::string bytes = real.substr(segment.offset + offsets[i], end - offsets[i]);
    object.constant_buffer.push_back(std::make_unique<program::BufferT>());
    object.constant_buffer.back()->storage.assign(bytes.begin(), bytes.end());
  }
  object.constant_segment.reset();
  object.segments.clear();
  if (change) change(object);
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  return finished(builder);
}

/// Returns the real program with named data beside its constants, and changed, described.
ProgramDescription described(std::uint32_t alignment, const std::function<void(ProgramT&)>& change = {}) {
  ProgramT object;
  const std::string real = real_program();
  program::GetProgram(real.data())->UnPackTo(&object);
  object.named_data.push_back(std::make_unique<program::NamedDataT>());
  object.named_data.back()->key = "named";
  object.named_data.back()->segment_index = 1;
  object.segments.push_back(std::make_unique<program::DataSegmentT>());
  if (change) change(object);
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  const SegmentInfo constants = ProgramFile::open(file_of(real))->segments().value().at(0);
  ProgramDescription out;
  out.metadata = file_of(finished(builder));
  out.segments = {{file_of(real.substr(constants.offset, constants.size))},
                  {file_of("of a backend"), alignment}};
  return out;
}

Result<ProgramPlan> planned(const std::string& file, const ProgramChanges& changes) {
  const auto opened = ProgramFile::open(file_of(file));
  REQUIRE_MESSAGE(opened, opened.error().message);
  return plan(*opened, changes);
}

program::TensorT& first_constant(ProgramT& object) {
  for (const auto& value : object.execution_plan[0]->values) {
    auto* tensor = value->val.AsTensor();
    if (tensor && tensor->data_buffer_idx > 0 && !tensor->allocation_info) return *tensor;
  }
  FAIL("no constant");
  std::abort();
}

TEST_CASE("constants in the flatbuffer are warned of, and extracted are a segment as ExecuTorch writes it") {
  const std::string older = older_program();
  const Findings findings = findings_of(older);
  CHECK(findings.ok());
  REQUIRE(findings.warnings.size() == 1);
  CHECK(exactly(full_message(findings.warnings[0])) ==
        containing(
            "expected constants in a segment, if only a placeholder, found 5 constants in the "
            "flatbuffer, where ExecuTorch 1.3 and later look for none and refuse the program; writing it "
            "again with extract_constants moves them"));
  const auto opened = ProgramFile::open(file_of(older));
  REQUIRE(opened);
  const auto extracted = plan(*opened, {.extract_constants = true});
  REQUIRE_MESSAGE(extracted, extracted.error().message);
  const std::string newer = written(*extracted);
  CHECK(lines_of(findings_of(newer).warnings).empty());
  const auto constants = [](const std::string& file) {
    const SegmentInfo segment = ProgramFile::open(file_of(file))->segments().value().at(0);
    CHECK(segment.use == "constants");
    return file.substr(segment.offset, segment.size);
  };
  CHECK((constants(newer) == constants(real_program())));

  // A program with its constants in a segment stays as it is.
  const auto real = ProgramFile::open(file_of(real_program()));
  REQUIRE(real);
  CHECK((written(plan(*real, {.extract_constants = true}).value()) == real_program()));
}

TEST_CASE("constants both in the flatbuffer and in a segment are found, as ExecuTorch refuses them") {
  ProgramT object;
  const std::string real = real_program();
  program::GetProgram(real.data())->UnPackTo(&object);
  object.constant_buffer.push_back(std::make_unique<program::BufferT>());
  object.segments.at(0)->size = 0;
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  const Findings findings = findings_of(finished(builder));
  const auto is_it = [](const Finding& error) {
    return error.message.find(
               "in a segment or in the flatbuffer, or ExecuTorch does not load them, found some in both") !=
           std::string::npos;
  };
  CHECK(std::count_if(findings.errors.begin(), findings.errors.end(), is_it) == 1);
}

TEST_CASE("a program that is described comes to be as one that is read, with the same changes") {
  const std::string whole = written(plan(described(1)).value());
  const auto named = planned(whole, {.constants_out = ConstantsOut()});
  REQUIRE(named);
  const auto weights = TensorDataFile::open(source_of(plan(*named->tensor_data).value()).value());
  REQUIRE(weights);
  for (const ProgramChanges& changes :
       {ProgramChanges{.drop_stack_traces = true}, ProgramChanges{.constants_out = ConstantsOut()},
        ProgramChanges{.constants_in = {&*weights}}, ProgramChanges{.metadata = {{"by", file_of("us")}}}}) {
    const auto made = plan(described(1), changes);
    REQUIRE_MESSAGE(made, made.error().message);
    const auto again = planned(whole, changes);
    REQUIRE_MESSAGE(again, again.error().message);
    CHECK((written(made->program) == written(again->program)));
    REQUIRE(made->tensor_data.has_value() == again->tensor_data.has_value());
    if (made->tensor_data) {
      CHECK((written(plan(*made->tensor_data).value()) == written(plan(*again->tensor_data).value())));
    }
  }
}

TEST_CASE("what changes a program that is described leaves its segments the alignments of their own") {
  const ProgramChanges changes{.metadata = {{"by", file_of("us")}}};
  const auto made = plan(described(4096), changes, {.strict_alignment = true});
  REQUIRE_MESSAGE(made, made.error().message);
  const auto segments = ProgramFile::open(file_of(written(made->program)))->segments().value();
  REQUIRE(segments.size() == 3);
  CHECK(segments[0].offset % 4096 == 0);
  CHECK(segments[0].offset - made->program.metadata_size < 4096);
  CHECK(segments[1].offset % 4096 == 0);
  CHECK(segments[2].use == "named data");
}

TEST_CASE("a description that does not fit its metadata is refused, and so are alignments that are none") {
  const auto error = [](const std::function<void(ProgramDescription&)>& change) {
    ProgramDescription program = described(1);
    change(program);
    return error_of(plan(program));
  };
  CHECK(error([](ProgramDescription& program) { program.segments.pop_back(); }) ==
        containing("expected 2 of segments as in its metadata, found 1"));
  CHECK(error([](ProgramDescription& program) { program.constants.emplace_back(); }) ==
        containing("expected 0 of constants as in its metadata, found 1"));
  CHECK(error([](ProgramDescription& program) { program.delegate_data.emplace_back(); }) ==
        containing("expected 0 of data of delegates as in its metadata, found 1"));
  CHECK(error_of(plan(described(48))) == containing("segment 1: alignment 48: expected a power of two"));
  CHECK(error_of(plan(described(1), ProgramPlanOptions{.segment_alignment = 48})) ==
        containing("segment alignment 48: expected a power of two"));
  CHECK(error_of(plan(described(1, [](ProgramT& object) { object.named_data[0]->segment_index = 2; }))) ==
        containing("expected a segment below 2, found 2"));
}

TEST_CASE("a segment that is described without an alignment may lie anywhere") {
  const auto program = read_program_json(source_of(R"({"segments": [{"size": 2, "data": [1, 2]}]})"));
  REQUIRE_MESSAGE(program, program.error().message);
  CHECK(program->segments.at(0).alignment == 1);
}

TEST_CASE("keys of constants are JSON of at most 64 MiB") {
  CHECK(error_of(read_constant_keys(ByteSource::zeros((64 << 20) + 1))) ==
        containing("expected at most 67108864 bytes, found 67108865"));
  CHECK(code_of(read_constant_keys(ByteSource::zeros(64 << 20))) == exactly("kCorrupt"));
}

TEST_CASE("the metadata that describes a program is read once, also for one that is changed") {
  const auto reads = [](const ProgramChanges& changes) {
    ProgramDescription description = described(1);
    const auto storage = std::make_shared<CountedBytes>(text_of(description.metadata));
    description.metadata = ByteSource(storage);
    REQUIRE(plan(description, changes));
    return storage->reads();
  };
  CHECK(reads({}) == 2);  // the identifier, and the one page that it is
  CHECK(reads({.drop_stack_traces = true, .metadata = {{"by", file_of("us")}}}) == 2);
}

TEST_CASE("constants in the flatbuffer move out as those in a segment do, and come back into one") {
  const auto older = planned(older_program(), {.constants_out = ConstantsOut()});
  const auto newer = planned(real_program(), {.constants_out = ConstantsOut()});
  REQUIRE_MESSAGE(older, older.error().message);
  REQUIRE(newer);
  CHECK((written(plan(*older->tensor_data).value()) == written(plan(*newer->tensor_data).value())));

  const auto weights = TensorDataFile::open(source_of(plan(*older->tensor_data).value()).value());
  REQUIRE(weights);
  const auto back = planned(written(older->program), {.constants_in = {&*weights}});
  REQUIRE_MESSAGE(back, back.error().message);
  const std::string again = written(back->program);
  CHECK(findings_of(again).errors.empty());
  CHECK(ProgramFile::open(file_of(again))->segments().value().at(0).use == "constants");
  const auto out_again = planned(again, {.constants_out = ConstantsOut()});
  REQUIRE(out_again);
  CHECK((written(plan(*out_again->tensor_data).value()) == written(plan(*older->tensor_data).value())));
}

TEST_CASE("without changes a program stays as it is") {
  const auto same = planned(older_program(), {});
  REQUIRE(same);
  CHECK((written(same->program) == older_program()));
  CHECK_FALSE(same->tensor_data);
}

TEST_CASE("a constant that is nowhere, or not as long as its tensor, is found") {
  const auto out = [](const std::function<void(program::TensorT&)>& change) {
    const std::string bad = older_program([&](ProgramT& object) { change(first_constant(object)); });
    return planned(bad, {.constants_out = ConstantsOut()});
  };
  CHECK(error_of(out([](auto& tensor) { tensor.data_buffer_idx = 999; })) ==
        containing("expected a constant below"));
  const auto shorter = out([](auto& tensor) { tensor.sizes = {2, 1, 1, 1}; });
  REQUIRE(shorter);
  CHECK(error_of(plan(*shorter->tensor_data)) ==
        containing("expected the 8 bytes of float32 [2, 1, 1, 1], found"));
}

TEST_CASE("a constant outside its segment is found, unless no tensor refers to it") {
  const auto out = [](std::size_t piece) {
    const auto change = [&](ProgramT& object) { object.constant_segment->offsets.at(piece) = 1'000'000; };
    return plan(described(1, change), {.constants_out = ConstantsOut()});
  };
  CHECK(error_of(out(1)) == containing("expected piece 1, "));
  CHECK(error_of(out(1)) == containing("found it at 1000000"));
  CHECK(out(0));
}

TEST_CASE("a constant of more elements than can be counted is found") {
  const auto change = [](ProgramT& object) {
    auto& sizes = first_constant(object).sizes;
    std::ranges::fill(sizes, std::numeric_limits<std::int32_t>::max());
  };
  CHECK(error_of(plan(described(1, change), {.constants_out = ConstantsOut()})) ==
        containing("expected a constant tensor, found "));
}

TEST_CASE("two constants can't have one key, and constants can't move both ways") {
  ConstantsOut keys;
  for (int i = 1; i < 10; ++i) keys.keys[std::to_string(i)] = "same";
  CHECK(error_of(planned(real_program(), {.constants_out = keys})) ==
        "kInvalidArgument: bad: key 'same' would be that of two tensors with other data");

  const auto out = planned(real_program(), {.constants_out = ConstantsOut()});
  const auto weights = TensorDataFile::open(source_of(plan(*out->tensor_data).value()).value());
  REQUIRE(weights);
  CHECK(error_of(planned(real_program(), {.constants_out = ConstantsOut(), .constants_in = {&*weights}})) ==
        "kInvalidArgument: constants can't be moved out and in at once");
  // The same file twice has every key twice.
  CHECK(error_of(planned(written(out->program), {.constants_in = {&*weights, &*weights}})) ==
        containing("is there twice, or in"));
}

TEST_CASE("an external tensor that the file has another shape of is not taken in") {
  const auto out = planned(real_program(), {.constants_out = ConstantsOut()});
  REQUIRE(out);
  TensorData other = *out->tensor_data;
  other.entries[0].layout->sizes.insert(other.entries[0].layout->sizes.begin(), 1);
  other.entries[0].layout->dim_order = {};
  for (std::size_t i = 0; i < other.entries[0].layout->sizes.size(); ++i) {
    other.entries[0].layout->dim_order.push_back(static_cast<std::uint8_t>(i));
  }
  const auto weights = TensorDataFile::open(source_of(plan(other).value()).value());
  REQUIRE(weights);
  CHECK(error_of(planned(written(out->program), {.constants_in = {&*weights}})) ==
        containing("as the program's tensor is, found float32 [1, "));
}

TEST_CASE("data that begins where empty data lies comes in with its own bytes") {
  TensorData data;
  data.buffers = {{ByteSource()}, {file_of("some")}};
  data.entries = {{"empty", 0}, {"full", 1}};
  const auto weights = TensorDataFile::open(source_of(plan(data).value()).value());
  REQUIRE(weights);
  REQUIRE(weights->entries()->at(0).offset == weights->entries()->at(1).offset);
  const auto made = planned(real_program(), {.constants_in = {&*weights}});
  REQUIRE_MESSAGE(made, made.error().message);
  const auto out = planned(written(made->program), {.constants_out = ConstantsOut()});
  REQUIRE_MESSAGE(out, out.error().message);
  const auto full = std::ranges::find(out->tensor_data->entries, "full", &TensorData::Entry::key);
  REQUIRE(full != out->tensor_data->entries.end());
  CHECK(text_of(out->tensor_data->buffers[full->buffer].data) == "some");
}

TEST_CASE("a method that is not there can't be dropped, nor the last one") {
  CHECK(error_of(planned(real_program(), {.drop_methods = {"backward"}})) ==
        "kNotFound: bad: has no method 'backward', it has 'forward'");
  CHECK(error_of(planned(real_program(), {.drop_methods = {"forward"}})) ==
        "kInvalidArgument: bad: no method would be left of 'forward'");
}

}  // namespace
}  // namespace etstream::program_changes_test
