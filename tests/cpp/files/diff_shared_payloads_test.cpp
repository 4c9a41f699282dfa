// SPDX-License-Identifier: BSD-3-Clause
//
// Differences between programs whose payloads share their bytes far more often than those of exporters do.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "diffs.h"
#include "etstream/program_plan.h"
#include "file_bytes.h"
#include "program_generated.h"
#include "test_errors.h"

namespace etstream::diff_shared_payloads_test {
namespace {

constexpr std::size_t kSize = (std::size_t{1} << 20) + 4096;
constexpr std::size_t kKeys = 12;

/// Named data by the index of its segment, and constants by their offsets in the last segment.
struct Parts {
  std::vector<std::string> segments;
  std::vector<std::uint32_t> named_data = {};
  std::vector<std::uint64_t> constants = {};
  std::size_t constant_size = 0;
};

std::string made(const Parts& parts) {
  program::ProgramT object;
  auto method = std::make_unique<program::ExecutionPlanT>();
  method->name = "forward";
  method->container_meta_type = std::make_unique<program::ContainerMetadataT>();
  method->non_const_buffer_sizes = {0};
  method->values.push_back(std::make_unique<program::EValueT>());
  method->values[0]->val.Set(program::IntT());
  method->inputs = method->outputs = {0};
  auto instruction = std::make_unique<program::InstructionT>();
  instruction->instr_args.Set(program::MoveCallT());
  method->chains.push_back(std::make_unique<program::ChainT>());
  method->chains[0]->instructions.push_back(std::move(instruction));
  object.constant_segment = std::make_unique<program::SubsegmentOffsetsT>();
  object.constant_segment->segment_index = static_cast<std::uint32_t>(parts.segments.size() - 1);
  object.constant_segment->offsets = {0};
  for (const std::uint64_t offset : parts.constants) {
    program::TensorT tensor;
    tensor.scalar_type = scalar_type::ScalarType_BYTE;
    tensor.sizes = {static_cast<std::int32_t>(parts.constant_size)};
    tensor.dim_order = {0};
    tensor.data_buffer_idx = static_cast<std::uint32_t>(object.constant_segment->offsets.size());
    object.constant_segment->offsets.push_back(offset);
    method->values.push_back(std::make_unique<program::EValueT>());
    method->values.back()->val.Set(std::move(tensor));
  }
  for (const std::uint32_t segment : parts.named_data) {
    auto named = std::make_unique<program::NamedDataT>();
    named->key = "key" + std::to_string(object.named_data.size());
    named->segment_index = segment;
    object.named_data.push_back(std::move(named));
  }
  ProgramDescription description;
  for (const std::string& segment : parts.segments) {
    object.segments.push_back(std::make_unique<program::DataSegmentT>());
    description.segments.push_back({file_of(segment)});
  }
  object.execution_plan.push_back(std::move(method));
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  description.metadata = file_of(finished(builder));
  const auto planned = plan(description);
  REQUIRE_MESSAGE(planned, planned.error().message);
  std::string out = written(*planned);
  CHECK(lines_of(findings_of(out).errors) == "");
  return out;
}

std::string changed_at(std::string bytes, std::size_t position) {
  bytes[position] = static_cast<char>(bytes[position] ^ 1);
  return bytes;
}

Parts with_keys(const std::string& data, std::size_t segments) {
  Parts out{std::vector(segments, data)};
  for (std::size_t i = 0; i < kKeys; ++i) out.named_data.push_back(static_cast<std::uint32_t>(i % segments));
  out.segments.emplace_back();
  return out;
}

Parts with_overlapping(const std::string& data) {
  Parts out{{data}};
  out.constant_size = data.size() - kKeys;
  for (std::size_t i = 0; i < kKeys; ++i) out.constants.push_back(i);
  return out;
}

TEST_CASE("many keys of one large segment are compared") {
  const std::string data = patterned(kSize);
  const std::string a = made(with_keys(data, 1));
  const std::string b = made(with_keys(changed_at(data, kSize - 1), 1));
  const FileDiff found = diff_of(a, b);
  CHECK(found.differences.size() == kKeys);
  CHECK(lines_of(found).starts_with(
      "content named data 'key0': 1052672 bytes, which differ from byte 1052671 on | 1052672 bytes\n"));
  CHECK(diff_of(a, made(with_keys(data, kKeys))).same_content == false);
  CHECK(diff_of(made(with_keys(data, kKeys)), b).differences.size() >= kKeys);
}

TEST_CASE("constants that overlap many times over are compared") {
  const std::string data = patterned(kSize);
  const std::string a = made(with_overlapping(data));
  const std::string b = made(with_overlapping(changed_at(data, kSize - kKeys - 1)));
  const FileDiff found = diff_of(a, b);
  REQUIRE(found.differences.size() == kKeys);
  CHECK(found.differences[0].in_a == "uint8 [1052660], 1052660 bytes, which differ from byte 1052659 on");
  CHECK(found.differences[1].subject == "constant 10");
  CHECK(found.differences[1].in_a == "uint8 [1052660], 1052660 bytes, which differ from byte 1052650 on");
}

}  // namespace
}  // namespace etstream::diff_shared_payloads_test
