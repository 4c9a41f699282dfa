// SPDX-License-Identifier: BSD-3-Clause
//
// A program that ExecuTorch wrote, half of it delegated to XNNPACK, with its constants moved to a file, and
// changes to that file that make it wrong. tests/peer has ExecuTorch's opinion of it.
#include "etstream/program_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/base/try.h"
#include "etstream/program_plan.h"
#include "etstream/tensor_data.h"
#include "file_bytes.h"
#include "formats/pte/backends/backend_payload.h"
#include "program_generated.h"
#include "test_errors.h"
#include "test_paths.h"

namespace etstream::program_weights_test {
namespace {

using program::ProgramT;

constexpr std::size_t kPayload = 2048;  // where the delegate's data is in the program as ExecuTorch wrote it
constexpr std::size_t kPayloadSize = 720;

std::string delegated_program() { return content_of(kGoldenDir + "/delegated_program/program.pte"); }

ProgramFile opened_program(const std::string& file) {
  auto program = ProgramFile::open(file_of(file), "m.pte");
  REQUIRE_MESSAGE(program, program.error().message);
  return std::move(program).value();
}

TensorDataFile opened_weights(const TensorData& data) {
  const auto layout = plan(data);
  REQUIRE_MESSAGE(layout, layout.error().message);
  auto file = TensorDataFile::open(file_of(written(*layout)));
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(file).value();
}

/// The program without its constants, and the constants.
struct Pair {
  std::string program;
  TensorData weights;  // the portable table, then XNNPACK's matrix and bias
};

Pair moved_out() {
  static const ByteSource kFile = file_of(delegated_program());
  const auto program = ProgramFile::open(kFile);
  auto moved = plan(*program, ProgramChanges{.constants_out = ConstantsOut{{{"1", "table.weight"}}}});
  REQUIRE_MESSAGE(moved, moved.error().message);
  return {written(moved->program), std::move(*moved->tensor_data)};
}

/// Returns "error: MESSAGE" or "warning: MESSAGE", a line each.
std::string told(const std::string& program, const std::vector<TensorData>& weights) {
  std::vector<TensorDataFile> files;
  for (const TensorData& data : weights) files.push_back(opened_weights(data));
  std::vector<const TensorDataFile*> all;
  for (const TensorDataFile& file : files) all.push_back(&file);
  const auto findings = verify(opened_program(program), all);
  REQUIRE_MESSAGE(findings, findings.error().message);
  std::string out;
  for (const Finding& error : findings->errors) out += "error: " + full_message(error) + "\n";
  for (const Finding& warning : findings->warnings) out += "warning: " + full_message(warning) + "\n";
  return out;
}

doctest::String told_exactly(const std::string& program, const std::vector<TensorData>& weights) {
  return exactly(told(program, weights));
}

TEST_CASE("a program fits the file that its constants were moved to, and asks for their keys") {
  const Pair pair = moved_out();
  REQUIRE(pair.weights.entries.size() == 3);
  CHECK(told_exactly(pair.program, {pair.weights}) == "");
  std::vector<std::string> keys;
  for (const auto& entry : pair.weights.entries) keys.push_back(entry.key);
  std::sort(keys.begin(), keys.end());
  CHECK(external_keys(opened_program(pair.program)).value() == keys);
  CHECK(external_keys(opened_program(delegated_program())).value().empty());
}

TEST_CASE("keys that nothing asks for are named, and counted where they are many") {
  Pair pair = moved_out();
  for (char c = 'a'; c < 'a' + 12; ++c) pair.weights.entries.push_back({{c}, 0});
  const std::string found = told(pair.program, {pair.weights});
  CHECK(found.starts_with("warning: bad: key 'a': m.pte does not ask for it\n"));
  CHECK(found.find("key 'j'") != std::string::npos);
  CHECK(found.find("key 'k'") == std::string::npos);
  CHECK(found.ends_with("warning: bad: 2 more keys: m.pte does not ask for it\n"));
}

TEST_CASE("keys that another backend may ask for count as asked for where its data holds them") {
  Pair pair = moved_out();
  const std::size_t id = pair.program.find("XnnpackBackend");
  REQUIRE(id != std::string::npos);
  pair.program.replace(id, 7, "Unknown");
  pair.weights.entries.push_back({"more", 0});
  CHECK(told_exactly(pair.program, {pair.weights}) ==
        "warning: bad: key 'more': m.pte does not ask for it\n");
  CHECK(external_keys(opened_program(pair.program)).value() == std::vector<std::string>{"table.weight"});
}

/// Makes the example's program, with its first constant external under the name "w", and `more` tensors like
/// it.
std::string external_program(const std::vector<std::function<void(program::TensorT&)>>& more) {
  ProgramT object;
  const std::string real = real_program();
  program::GetProgram(real.data())->UnPackTo(&object);
  object.constant_segment.reset();
  object.segments.clear();
  program::TensorT constant;
  auto& values = object.execution_plan[0]->values;
  for (const auto& value : values) {
    auto* tensor = value->val.AsTensor();
    if (!tensor || tensor->data_buffer_idx == 0) continue;
    tensor->data_buffer_idx = 0;
    constant.dim_order = {0, 1};
    constant.sizes = {2, 3};
    constant.scalar_type = tensor->scalar_type;
  }
  constant.extra_tensor_info = std::make_unique<program::ExtraTensorInfoT>();
  constant.extra_tensor_info->fully_qualified_name = "w";
  constant.extra_tensor_info->location = program::TensorDataLocation_EXTERNAL;
  for (std::size_t i = 0; i <= more.size(); ++i) {
    program::TensorT tensor(constant);
    if (i > 0) more[i - 1](tensor);
    values.push_back(std::make_unique<program::EValueT>());
    values.back()->val.Set(std::move(tensor));
  }
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, program::Program::Pack(builder, &object));
  return finished(builder);
}

TEST_CASE("of constants of one key ExecuTorch compares the first alone, and all that are planned") {
  TensorData weights;
  weights.buffers.push_back({source_of(std::string(24, '\1'))});
  weights.entries.push_back({"w", 0, TensorLayout{ScalarType::kFloat32, {2, 3}, {0, 1}}});
  const auto is_planned = [](auto& tensor) {
    tensor.allocation_info = std::make_unique<program::AllocationDetailsT>();
  };
  const std::string place = "bad: key 'w': expected float32 [";
  CHECK(told_exactly(external_program({[](auto&) {}}), {weights}) == "");
  CHECK(told_exactly(external_program({[](auto& tensor) {
                       tensor.sizes = {3, 2};
                     }}),
                     {weights}) ==
        exactly("warning: " + place +
                "3, 2] as method 'forward' has it, found float32 [2, 3]: ExecuTorch 1.5.1 does not compare "
                "it, and takes the bytes as they are\n"));
  CHECK(told_exactly(external_program({[](auto& tensor) {
                       tensor.sizes = {3, 3};
                     }}),
                     {weights}) ==
        exactly("error: " + place +
                "3, 3] as method 'forward' has it, found float32 [2, 3]: ExecuTorch 1.5.1 does not compare "
                "it, and reads past the end\n"));
  const auto planned_other = [&](auto& tensor) {
    is_planned(tensor);
    tensor.sizes = {3, 2};
  };
  CHECK(told_exactly(external_program({planned_other}), {weights}) ==
        exactly("error: " + place +
                "3, 2] as method 'forward' has it, found float32 [2, 3]: ExecuTorch 1.5.1 does not load the "
                "method (0x24)\n"));
}

Result<std::vector<NamedDataRequest>> read_constants(const std::string& payload) {
  ETSTREAM_ASSIGN(const auto read, read_backend_payload(kXnnpackBackend, source_of(payload), "p"));
  return read->requests;
}

TEST_CASE("payloads that are cut or flipped give an error or constants, never a fault") {
  const std::string payload = delegated_program().substr(kPayload, kPayloadSize);
  std::size_t refused = 0;
  for (std::size_t size = 0; size < payload.size(); ++size) {
    if (!read_constants(payload.substr(0, size))) ++refused;
  }
  CHECK(refused == payload.size());
  refused = 0;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    for (const char flip : {'\1', '\x80', '\xff'}) {
      std::string flipped = payload;
      flipped[i] = static_cast<char>(flipped[i] ^ flip);
      const auto constants = read_constants(flipped);
      if (constants) continue;
      ++refused;
      CHECK(constants.error().message.starts_with("p: offset "));
    }
  }
  CHECK(refused > 100);
}

}  // namespace
}  // namespace etstream::program_weights_test
