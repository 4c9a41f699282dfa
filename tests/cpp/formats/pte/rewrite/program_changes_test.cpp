// SPDX-License-Identifier: BSD-3-Clause
//
// Programs with changed content: cases that ExecuTorch's own models do not have, and errors.
#include "etstream/program_changes.h"

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

TEST_CASE("the source locations of each method's instructions are dropped") {
  const auto with_traces = [](bool has) {
    return older_program([&](ProgramT& object) {
      object.execution_plan.push_back(std::make_unique<program::ExecutionPlanT>(*object.execution_plan[0]));
      object.execution_plan[1]->name = "other";
      if (!has) return;
      for (const auto& method : object.execution_plan) {
        method->chains.at(0)->stacktrace.push_back(std::make_unique<program::FrameListT>());
        method->chains[0]->stacktrace[0]->items.push_back(std::make_unique<program::FrameT>());
      }
    });
  };
  const auto without = planned(with_traces(true), {.drop_stack_traces = true});
  REQUIRE_MESSAGE(without, without.error().message);
  const auto expected = planned(with_traces(false), {.drop_stack_traces = true});
  CHECK((written(without->program) == written(expected.value().program)));
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

/// Returns the methods with the data of their delegates, the numbers of constants and of delegates' data, and
/// the keys of named data.
std::string content(const std::string& file) {
  ProgramT object;
  program::GetProgram(file.data())->UnPackTo(&object);
  std::string out;
  for (const auto& method : object.execution_plan) {
    out += "method " + method->name;
    for (const auto& delegate : method->delegates) {
      const auto& data = object.backend_delegate_data.at(delegate->processed->index)->data;
      out += " " + std::string(data.begin(), data.end());
    }
    out += "\n";
  }
  const std::size_t moved = object.constant_segment ? object.constant_segment->offsets.size() : 0;
  out += std::to_string(object.constant_buffer.size() + moved) + " constants, " +
         std::to_string(object.backend_delegate_data.size()) + " data of delegates, named";
  for (const auto& named : object.named_data) out += " " + named->key;
  return out;
}

/// Adds a delegate to a method. It shares its data with others if theirs is the same.
void add_delegate(ProgramT& object, std::size_t method, const std::string& text) {
  auto& all = object.backend_delegate_data;
  const std::vector<std::uint8_t> data(text.begin(), text.end());
  auto found = std::ranges::find_if(all, [&](const auto& each) { return each->data == data; });
  if (found == all.end()) {
    all.push_back(std::make_unique<program::BackendDelegateInlineDataT>());
    all.back()->data = data;
    found = all.end() - 1;
  }
  auto delegate = std::make_unique<program::BackendDelegateT>();
  delegate->id = "Backend";
  delegate->processed = std::make_unique<program::BackendDelegateDataReferenceT>();
  delegate->processed->index = static_cast<std::uint32_t>(found - all.begin());
  object.execution_plan.at(method)->delegates.push_back(std::move(delegate));
}

/// Makes the older program with a method before and one behind its own. `own` tells which of them has a
/// constant of its own.
std::string three_methods(std::size_t own) {
  return older_program([&](ProgramT& object) {
    for (const char* name : {"first", "last"}) {
      ProgramT other;
      program::GetProgram(real_program().data())->UnPackTo(&other);
      other.execution_plan[0]->name = name;
      const bool is_first = name == std::string("first");
      object.execution_plan.insert(is_first ? object.execution_plan.begin() : object.execution_plan.end(),
                                   std::move(other.execution_plan[0]));
    }
    for (const auto& value : object.execution_plan.at(own)->values) {
      auto* tensor = value->val.AsTensor();
      if (!tensor || tensor->data_buffer_idx == 0 || tensor->allocation_info) continue;
      auto constant = std::make_unique<program::BufferT>(*object.constant_buffer.at(tensor->data_buffer_idx));
      tensor->data_buffer_idx = static_cast<std::uint32_t>(object.constant_buffer.size());
      object.constant_buffer.push_back(std::move(constant));
      break;
    }
    add_delegate(object, 0, "asks for key_0");
    add_delegate(object, 0, "asks for key_1");
    add_delegate(object, 1, "asks for key_1");
    add_delegate(object, 2, "asks for key_2");
    for (const char* key : {"key_0", "key_1", "key_2", "other"}) {
      object.named_data.push_back(std::make_unique<program::NamedDataT>());
      object.named_data.back()->key = key;
      object.segments.push_back(std::make_unique<program::DataSegmentT>());
      object.named_data.back()->segment_index = static_cast<std::uint32_t>(object.segments.size() - 1);
    }
  });
}

TEST_CASE("a method that is dropped takes with it what it alone uses") {
  const auto left = [](std::size_t own, const std::vector<std::string>& dropped) {
    const auto made = planned(three_methods(own), {.drop_methods = dropped});
    REQUIRE_MESSAGE(made, made.error().message);
    CHECK(findings_of(written(made->program)).errors.empty());
    return exactly(content(written(made->program)));
  };
  CHECK(left(2, {}) ==
        "method first asks for key_0 asks for key_1\nmethod forward asks for key_1\nmethod last asks for "
        "key_2\n"
        "6 constants, 3 data of delegates, named key_0 key_1 key_2 other");
  CHECK(left(2, {"last"}) ==
        "method first asks for key_0 asks for key_1\nmethod forward asks for key_1\n"
        "5 constants, 2 data of delegates, named key_0 key_1 other");
  CHECK(left(0, {"last"}) ==
        "method first asks for key_0 asks for key_1\nmethod forward asks for key_1\n"
        "6 constants, 2 data of delegates, named key_0 key_1 other");
  CHECK(left(0, {"first"}) ==
        "method forward asks for key_1\nmethod last asks for key_2\n"
        "5 constants, 2 data of delegates, named key_1 key_2 other");
  CHECK(left(0, {"first", "forward"}) ==
        "method last asks for key_2\n5 constants, 1 data of delegates, named key_2 other");
}

/// Returns a program of methods that each have an initial state, the piece of its number, described.
ProgramDescription with_states(const std::vector<std::uint32_t>& numbers,
                               const std::vector<std::uint64_t>& offsets = {0, 0, 16}) {
  ProgramT object;
  for (const std::uint32_t number : numbers) {
    auto method = made::identity();
    method->name = "state " + std::to_string(number);
    made::add_tensor(*method, {"", {4}, "", ScalarType::kFloat32, made::Place::kInitialState}, number);
    object.execution_plan.push_back(std::move(method));
  }
  object.mutable_data_segments.push_back(std::make_unique<program::SubsegmentOffsetsT>());
  object.mutable_data_segments[0]->offsets = offsets;
  object.segments.push_back(std::make_unique<program::DataSegmentT>());
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  ProgramDescription out;
  out.metadata = file_of(finished(builder));
  out.segments = {{file_of(std::string(16, 'a') + std::string(16, 'b'))}};
  return out;
}

TEST_CASE("a method that is dropped takes its initial state with it, if no other has that") {
  const auto left = [](const ProgramDescription& program, const std::string& dropped) {
    const auto made = plan(program, {.drop_methods = {dropped}});
    REQUIRE_MESSAGE(made, made.error().message);
    const std::string file = written(made->program);
    CHECK(lines_of(findings_of(file).errors) == "");
    ProgramT object;
    program::GetProgram(file.data())->UnPackTo(&object);
    std::string out;
    const auto segments = ProgramFile::open(file_of(file))->segments().value();
    for (const SegmentInfo& segment : segments) out += file.substr(segment.offset, segment.size);
    for (const auto& pieces : object.mutable_data_segments) {
      for (const std::uint64_t offset : pieces->offsets) out += " " + std::to_string(offset);
    }
    return out;
  };
  const std::string a(16, 'a');
  const std::string b(16, 'b');
  CHECK(left(with_states({1, 2, 0}), "state 0") == a + b + " 0 0 16");
  CHECK(left(with_states({1, 2}), "state 1") == b + " 0 0");
  CHECK(left(with_states({1, 2}), "state 2") == a + " 0 0");
  CHECK(left(with_states({0, 1}, {0, 0}), "state 0") == a + b + " 0 0");
  CHECK(left(with_states({0, 1}, {0, 0}), "state 1") == "");
  const auto uneven = plan(with_states({1, 2, 3}, {0, 0, 15, 16}), {.drop_methods = {"state 2"}});
  REQUIRE_MESSAGE(uneven, uneven.error().message);
  CHECK(written(uneven->program).find(a.substr(1) + b) != std::string::npos);  // without padding
  CHECK(error_of(plan(with_states({1, 2}, {0, 0, 33}), {.drop_methods = {"state 1"}})) ==
        containing("expected piece 2, 0 bytes, in its place in a segment of 32 bytes, found it at 33"));
}

TEST_CASE("a method that is not there can't be dropped, nor the last one") {
  CHECK(error_of(planned(real_program(), {.drop_methods = {"backward"}})) ==
        "kNotFound: bad: has no method 'backward', it has 'forward'");
  CHECK(error_of(planned(real_program(), {.drop_methods = {"forward"}})) ==
        "kInvalidArgument: bad: no method would be left of 'forward'");
}

}  // namespace
}  // namespace etstream::program_changes_test
