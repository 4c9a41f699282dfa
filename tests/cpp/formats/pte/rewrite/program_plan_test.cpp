// SPDX-License-Identifier: BSD-3-Clause
//
// Programs laid out again: cases that ExecuTorch's own models do not have, and errors.
#include "etstream/program_plan.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "etstream/inspect.h"
#include "file_bytes.h"
#include "formats/pte/program_model.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::program_plan_test {
namespace {

using program::BackendDelegateDataReferenceT;
using program::BackendDelegateInlineDataT;
using program::BackendDelegateT;
using program::DataLocation_INLINE;
using program::DataLocation_SEGMENT;
using program::ProgramT;

constexpr std::size_t kSegmentDataSize = 32;  // where the extended header has it

/// Adds a delegate whose data is that entry of the flatbuffer's.
void add_delegate(ProgramT& object, std::uint32_t index) {
  auto delegate = std::make_unique<BackendDelegateT>();
  delegate->id = "Test";
  delegate->processed = std::make_unique<BackendDelegateDataReferenceT>();
  delegate->processed->location = DataLocation_INLINE;
  delegate->processed->index = index;
  object.execution_plan[0]->delegates.push_back(std::move(delegate));
}

/// Returns the real program with delegates' data in the flatbuffer, an entry each, packed by FlatBuffers' own
/// builder.
std::string with_inline_delegates(const std::vector<std::string>& data) {
  ProgramT object;
  const std::string real = real_program();
  program::GetProgram(real.data())->UnPackTo(&object);
  object.constant_segment.reset();
  object.segments.clear();
  for (const std::string& bytes : data) {
    add_delegate(object, static_cast<std::uint32_t>(object.backend_delegate_data.size()));
    auto entry = std::make_unique<BackendDelegateInlineDataT>();
    entry->data.assign(bytes.begin(), bytes.end());
    object.backend_delegate_data.push_back(std::move(entry));
  }
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  return finished(builder);
}

Result<FilePlan> planned(const ByteSource& file, const ProgramPlanOptions& options) {
  const auto opened = ProgramFile::open(file);
  REQUIRE_MESSAGE(opened, opened.error().message);
  return plan(*opened, options);
}

std::string laid_out(const std::string& file, const ProgramPlanOptions& options) {
  const auto plan = planned(file_of(file), options);
  REQUIRE_MESSAGE(plan, plan.error().message);
  return written(*plan);
}

/// Returns the data of each delegate, wherever it is: "segment N: ..." or "entry N: ...".
std::vector<std::string> delegates_of(const std::string& file) {
  const auto& root = *program::GetProgram(file.data());
  const auto opened = ProgramFile::open(file_of(file));
  REQUIRE(opened);
  std::vector<std::string> out;
  for (const auto* delegate : *root.execution_plan()->Get(0)->delegates()) {
    const std::uint32_t index = delegate->processed()->index();
    const std::string number = std::to_string(index) + ": ";
    if (delegate->processed()->location() == DataLocation_SEGMENT) {
      const auto segment = opened->segments().value().at(index);
      out.push_back("segment " + number + file.substr(segment.offset, segment.size));
    } else {
      const auto* data = root.backend_delegate_data()->Get(index)->data();
      out.push_back("entry " + number + std::string(data->begin(), data->end()));
    }
  }
  return out;
}

TEST_CASE("without options a program of any writer stays as it is") {
  for (const std::string& file : {real_program(), with_inline_delegates({"one", "", "two"})}) {
    CHECK((laid_out(file, {}) == file));
  }
}

TEST_CASE("a list that a program does not have is not added to it") {
  const std::string file = laid_out(with_inline_delegates({}), {.segment_alignment = 64});
  const auto& root = *program::GetProgram(file.data());
  CHECK(root.backend_delegate_data() == nullptr);
  CHECK(root.named_data() == nullptr);
  CHECK(root.mutable_data_segments() == nullptr);
}

TEST_CASE("the options that a program has already give the same bytes") {
  CHECK((laid_out(real_program(), {.segment_alignment = 128}) == real_program()));
}

TEST_CASE("without options segments keep the alignment that their places show") {
  const auto places = [](const std::string& file) {
    const auto opened = ProgramFile::open(file_of(file));
    REQUIRE(opened);
    const auto segments = opened->segments().value();
    std::vector<std::uint64_t> out;
    for (std::size_t i = 0; i < 3; ++i) out.push_back(segments.at(i).offset - segments[0].offset);
    return out;
  };
  const auto segment_base_of = [](const std::string& file) {
    return ProgramFile::open(file_of(file))->model().header().segment_base_offset;
  };
  for (const std::uint32_t alignment : {1U, 16U, 64U, 128U, 256U, 4096U}) {
    for (std::size_t empty = 0; empty < 9; ++empty) {
      CAPTURE(alignment);
      CAPTURE(empty);
      std::vector<std::string> data(empty);  // which give the flatbuffer another size
      data.insert(data.end(), {"one", "two", "three"});
      const auto first = planned(file_of(with_inline_delegates(data)),
                                 {.segment_alignment = alignment, .delegates = DelegateData::kInSegments});
      REQUIRE_MESSAGE(first, first.error().message);
      const std::string file = written(*first);
      CHECK((laid_out(file, {}) == file));
      const auto padding = segment_base_of(file) - first->metadata_size;
      if (alignment > 128 && padding < 128) continue;  // the usual one explains that, too
      // All are placed again, as another follows.
      const auto more = plan(ProgramFile::open(file_of(file)).value(), {.metadata = {{"by", file_of("us")}}});
      REQUIRE_MESSAGE(more, more.error().message);
      const std::string again = written(more->program);
      CHECK(places(again) == places(file));
      CHECK(segment_base_of(again) % alignment == 0);
      CHECK(segment_base_of(again) - more->program.metadata_size < alignment);
    }
  }
}

TEST_CASE("equal data of delegates goes into one segment, and data of no bytes stays in the flatbuffer") {
  const std::string file = with_inline_delegates({"same", "", "other", "same", ""});
  const std::string moved = laid_out(file, {.segment_alignment = 64, .delegates = DelegateData::kInSegments});
  CHECK(delegates_of(moved) == std::vector<std::string>{"segment 0: same", "entry 0: ", "segment 1: other",
                                                        "segment 0: same", "entry 1: "});
  const auto opened = ProgramFile::open(file_of(moved));
  REQUIRE(opened);
  const auto segments = opened->segments().value();
  for (const SegmentInfo& segment : segments) CHECK(segment.offset % 64 == 0);

  const std::string back = laid_out(moved, {.delegates = DelegateData::kInline});
  CHECK(delegates_of(back) == std::vector<std::string>{"entry 0: same", "entry 1: ", "entry 2: other",
                                                       "entry 0: same", "entry 3: "});
  CHECK(ProgramFile::open(file_of(back))->model().header().length == 0);
}

TEST_CASE("a program has a header if a segment of it has bytes, be it one") {
  const auto header_size = [](const std::string& file) {
    return ProgramFile::open(file_of(file))->model().header().length;
  };
  CHECK(header_size(laid_out(with_inline_delegates({"x"}), {.delegates = DelegateData::kInSegments})) > 0);
  // A segment of constants without one need not be there.
  ProgramT object;
  program::GetProgram(real_program().data())->UnPackTo(&object);
  object.constant_segment->offsets = {0};
  for (const std::size_t segments : {0U, 1U}) {
    object.segments.clear();
    if (segments > 0) object.segments.push_back(std::make_unique<program::DataSegmentT>());
    for (const auto& value : object.execution_plan[0]->values) {
      auto* tensor = value->val.AsTensor();
      if (tensor) tensor->data_buffer_idx = 0;
    }
    flatbuffers::FlatBufferBuilder builder;
    FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
    CHECK(header_size(laid_out(finished(builder), {.segment_alignment = 64})) == 0);
  }
}

TEST_CASE("the padding before a segment is what lies between it and the bytes before") {
  const auto without_constants = [](const std::string& file, std::size_t empty_segments) {
    ProgramT object;
    program::GetProgram(file.data())->UnPackTo(&object);
    for (const auto& value : object.execution_plan[0]->values) {
      auto* tensor = value->val.AsTensor();
      if (tensor) tensor->data_buffer_idx = 0;
    }
    for (std::size_t i = 0; i < empty_segments; ++i) {
      object.segments.push_back(std::make_unique<program::DataSegmentT>());
    }
    flatbuffers::FlatBufferBuilder builder;
    FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
    return finished(builder);
  };
  const auto bytes_of = [](const std::string& file) {
    const auto found = inspect(file_of(file));
    REQUIRE_MESSAGE(found, found.error().message);
    return found->program.value();
  };
  const auto in_segments = [&](const std::vector<std::string>& data) {
    return laid_out(without_constants(with_inline_delegates(data), 0),
                    {.segment_alignment = 64, .delegates = DelegateData::kInSegments});
  };
  const ProgramBytes bytes = bytes_of(in_segments({"x", "y"}));
  REQUIRE(bytes.segments.size() == 2);
  CHECK(bytes.segments[0].padding < 64);
  CHECK(bytes.segments[1].padding == 63);
  CHECK(bytes.padding == bytes.segments[0].padding + 63);
  CHECK(bytes_of(without_constants(with_inline_delegates({}), 1)).padding == 0);
  // An empty segment has no end from which the next could count.
  std::string with_empty = in_segments({"x", "y", "z"});
  auto* const empty = program::GetMutableProgram(with_empty.data())->mutable_segments()->GetMutableObject(1);
  REQUIRE(empty->mutate_size(0));
  REQUIRE(empty->mutate_offset(128));
  CHECK(bytes_of(with_empty).segments[2].padding == 127);
}

TEST_CASE("without options delegates in the flatbuffer keep the alignment that their places show") {
  const std::string program = with_inline_delegates({"x"});
  for (const std::uint32_t alignment : {16U, 64U, 256U, 4096U}) {
    const std::string file = laid_out(program, {.delegate_alignment = alignment});
    CHECK((laid_out(file, {.delegates = DelegateData::kInline}) == file));
  }
}

TEST_CASE("strict alignment aligns constants in their segment as in the flatbuffer") {
  const std::string file =
      laid_out(real_program(), {.constant_tensor_alignment = 4096, .strict_alignment = true});
  const auto opened = ProgramFile::open(file_of(file));
  REQUIRE(opened);
  CHECK(opened->segments().value().at(0).offset % 4096 == 0);
}

TEST_CASE("verify warns of delegates in segments that lie at less than they were exported for") {
  const std::string file = with_inline_delegates({"one", "two"});
  const auto warns = [&](const ProgramPlanOptions& options) {
    return lines_of(findings_of(laid_out(file, options)).warnings)
               .find(
                   "expected the data of a delegate at a multiple of 4096, as the program was exported "
                   "for, found it where segments lie; strict_alignment with delegate_alignment 4096 moves "
                   "it\n") != std::string::npos;
  };
  CHECK_FALSE(warns({.delegate_alignment = 4096, .delegates = DelegateData::kInline}));
  CHECK_FALSE(warns({.delegate_alignment = 128, .delegates = DelegateData::kInSegments}));
  CHECK(warns({.delegate_alignment = 4096, .delegates = DelegateData::kInSegments}));
  const auto most = ProgramFile::open(
      file_of(laid_out(file, {.delegate_alignment = 65536, .delegates = DelegateData::kInSegments})));
  CHECK(most->model().header_alignment().value() == 65536);
  CHECK_FALSE(
      warns({.delegate_alignment = 4096, .delegates = DelegateData::kInSegments, .strict_alignment = true}));
}

TEST_CASE("an alignment that is none is refused") {
  const auto file = file_of(real_program());
  CHECK(error_of(planned(file, {.segment_alignment = 48})) ==
        "kInvalidArgument: segment alignment 48: expected a power of two from 1 to 1073741824");
  CHECK(error_of(planned(file, {.segment_alignment = 0})) ==
        "kInvalidArgument: segment alignment 0: expected a power of two from 1 to 1073741824");
  CHECK(error_of(planned(file, {.delegate_alignment = 131072})) ==
        "kInvalidArgument: delegate alignment 131072: expected a power of two from 1 to 65536");
}

TEST_CASE("the data of delegates is not put into a flatbuffer that it does not fit in") {
  const std::uint64_t size = 123457;  // which no other number in the file is
  std::string file =
      laid_out(with_inline_delegates({std::string(size, 'd')}), {.delegates = DelegateData::kInSegments});
  const std::uint64_t large = std::uint64_t{3} << 30;
  const std::string pattern(reinterpret_cast<const char*>(&size), sizeof(size));
  int places = 0;
  for (auto at = file.find(pattern, kSegmentDataSize); at != std::string::npos;
       at = file.find(pattern, at + 1)) {
    put_at(file, at, large);
    ++places;
  }
  REQUIRE(places == 2);  // in the extended header and the segment's table
  const auto grown = ByteSource::concatenation({file_of(file), ByteSource::zeros(large - size)});
  REQUIRE(grown);
  const auto refused = planned(*grown, {.delegates = DelegateData::kInline});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kTooLarge);
  CHECK(refused.error().advice == Advice{AdviceTerm::kDelegatesInSegments});
  CHECK(planned(*grown, {.segment_alignment = 4096})->size > large);
}

TEST_CASE("what_an_older_release_has_no_field_for_is_refused_by_name") {
  for (const std::string field : {"ExecutionPlan.non_const_buffer_device", "ExtraTensorInfo.device_type",
                                  "ExtraTensorInfo.device_index"}) {
    CAPTURE(field);
    ProgramT object;
    const std::string real = real_program();
    program::GetProgram(real.data())->UnPackTo(&object);
    object.constant_segment.reset();
    object.segments.clear();
    auto extra = std::make_unique<program::ExtraTensorInfoT>();
    if (field.ends_with("type")) extra->device_type = static_cast<program::DeviceType>(1);
    if (field.ends_with("index")) extra->device_index = 1;
    if (field.ends_with("device")) {
      object.execution_plan[0]->non_const_buffer_device.push_back(
          std::make_unique<program::NonConstBufferDeviceT>());
    }
    for (const auto& value : object.execution_plan[0]->values) {
      auto* tensor = value->val.AsTensor();
      if (tensor && extra) tensor->extra_tensor_info = std::move(extra);
    }
    flatbuffers::FlatBufferBuilder builder;
    FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
    const ByteSource file = file_of(finished(builder));
    CHECK(error_of(planned(file, {.as_of = ExecutorchRelease::k1_3})) == "no error");
    CHECK(error_of(planned(file, {.as_of = ExecutorchRelease::k1_2})) ==
          exactly("kInvalidArgument: the program has a value for " + field +
                  ", which ExecuTorch 1.2 does not know"));
  }
}

}  // namespace
}  // namespace etstream::program_plan_test
