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
#include "etstream/program_changes.h"
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
constexpr std::size_t kGraph = 32;  // in the payload

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

/// Makes the program with an XNNPACK payload of its own that is changed; its constants are in it.
std::string with_payload(const std::function<void(std::string&)>& change) {
  std::string file = delegated_program();
  std::string payload = file.substr(kPayload, kPayloadSize);
  change(payload);
  REQUIRE(payload.size() == kPayloadSize);
  return file.replace(kPayload, kPayloadSize, payload);
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

TEST_CASE("what is wrong with a file is said of the key, with what ExecuTorch makes of it") {
  const Pair pair = moved_out();
  const std::string matrix = "'" + pair.weights.entries[1].key + "'";
  const std::string table = "bad: key 'table.weight': expected float32 [5, 3]";
  const std::string refused = ": ExecuTorch 1.5.1 does not load the method (0x24)\n";
  struct Row {
    std::string expected;
    std::function<void(TensorData&)> spoil;
  };
  const std::string no_table =
      "error: m.pte: method 'forward': expected tensor 'table.weight', float32 [5, 3], in a tensor "
      "data file, found it in none: ExecuTorch 1.5.1 does not load the method (0x20)\n";
  const std::string no_matrix =
      "error: m.pte: method 'forward', delegate 0 (XnnpackBackend): expected named data " + matrix +
      " of 48 bytes in a file or in the program, found it in neither: ExecuTorch "
      "1.5.1 does not load the method (0x20)\n";
  const std::string reads =
      ": expected the 48 bytes that method 'forward', delegate 0 (XnnpackBackend) reads, found ";
  const Row rows[] = {
      {no_table, [](auto& data) { data.entries.erase(data.entries.begin()); }},
      {no_table + "warning: bad: key 'renamed': m.pte does not ask for it\n",
       [](auto& data) { data.entries[0].key = "renamed"; }},
      {no_matrix, [](auto& data) { data.entries.erase(data.entries.begin() + 1); }},
      {"error: bad: has 1 of the 3 keys that m.pte asks for: it belongs to another version, or is a part of "
       "the weights\n" +
           no_table + no_matrix,
       [](auto& data) { data.entries.erase(data.entries.begin(), data.entries.begin() + 2); }},
      {"error: " + table + " as method 'forward' has it, found int32 [5, 3]" + refused,
       [](auto& data) { data.entries[0].layout->scalar_type = ScalarType::kInt32; }},
      {"error: " + table + " as method 'forward' has it, found float32 [3, 5]" + refused,
       [](auto& data) {
         data.entries[0].layout->sizes = {3, 5};
       }},
      {"error: " + table +
           " with dim_order [0, 1] as method 'forward' has it, found float32 [5, 3] with dim_order [1, 0]" +
           refused,
       [](auto& data) {
         data.entries[0].layout->dim_order = {1, 0};
       }},
      {"error: " + table +
           " as method 'forward' has it, found data without a layout: ExecuTorch 1.5.1 ends "
           "in a fault\n",
       [](auto& data) { data.entries[0].layout.reset(); }},
      {"error: bad: key " + matrix + reads + "12: XNNPACK does not compare them, and reads past the end\n",
       [](auto& data) { data.entries[1].buffer = data.entries[2].buffer; }},
      {"warning: bad: key " + matrix + reads + "60\n",
       [](auto& data) { data.entries[1].buffer = data.entries[0].buffer; }},
      {"error: bad: expected a key in one of the files, found none: ExecuTorch 1.5.1's Module does not load "
       "them (0x12)\n" +
           no_table + no_matrix,
       [](auto& data) {
         data.entries.clear();
         data.buffers.clear();
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expected);
    TensorData weights = pair.weights;
    row.spoil(weights);
    const std::string found = told(pair.program, {weights});
    CHECK(exactly(found.substr(0, row.expected.size())) == exactly(row.expected));
    CHECK((weights.entries.empty() || found.size() == row.expected.size()));
  }
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

TEST_CASE("several files serve a program together, unless they have a key in common") {
  const Pair pair = moved_out();
  TensorData first = pair.weights;
  TensorData second = pair.weights;
  first.entries.pop_back();
  second.entries.erase(second.entries.begin(), second.entries.begin() + 2);
  CHECK(told_exactly(pair.program, {first, second}) == "");
  CHECK(told_exactly(pair.program, {pair.weights, second}) ==
        exactly("error: bad: key '" + second.entries[0].key +
                "': expected in one file alone, found in bad too: ExecuTorch 1.5.1's Module does not load "
                "them (0x12)\n"));
}

TEST_CASE("a key that the program has too is one of a warning where the bytes are the same") {
  Pair pair = moved_out();
  const std::string whole = delegated_program();
  const std::string matrix = pair.weights.entries[1].key;
  pair.weights.entries.erase(pair.weights.entries.begin());  // which the program has without a key
  const std::string same = told(whole, {pair.weights});
  CHECK(same.starts_with("warning: bad: key '"));
  CHECK(same.find("error") == std::string::npos);
  CHECK(same.find("key '" + matrix + "': m.pte has the same data under it\n") != std::string::npos);
  std::string other(48, 'x');
  pair.weights.buffers[pair.weights.entries[0].buffer].data = source_of(other);
  CHECK(told(whole, {pair.weights})
            .starts_with("error: bad: key '" + matrix +
                         "': m.pte has other data under it: ExecuTorch 1.5.1 gives delegates that of bad\n"));
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

TEST_CASE("an XNNPACK payload names the constants that it asks for, with their sizes") {
  const std::string payload = delegated_program().substr(kPayload, kPayloadSize);
  const auto constants = read_constants(payload);
  REQUIRE_MESSAGE(constants, constants.error().message);
  REQUIRE(constants->size() == 2);
  CHECK((*constants)[0].size == 48);
  CHECK((*constants)[1].size == 12);
  const Pair pair = moved_out();
  CHECK((*constants)[0].key == pair.weights.entries[1].key);
  CHECK((*constants)[1].key == pair.weights.entries[2].key);
  // In a payload without a header, constants are in the graph, and none is asked for.
  const auto old = read_constants(payload.substr(kGraph));
  REQUIRE_MESSAGE(old, old.error().message);
  CHECK(old->empty());
}

TEST_CASE("a payload that XNNPACK can't load is an error that names the delegate") {
  struct Row {
    std::size_t offset;
    std::string bytes;
    std::string expected;
  };
  const Row rows[] = {
      {4, "XH99", "offset 4: expected the identifier of XNNPACK's graph (XN00, XN01), found 'XH99'"},
      {10, std::string("\xff\xff\xff\x7f", 4), "offset 10: expected a graph inside 720 bytes, found "},
      {14, std::string("\xff\xff\xff\x7f", 4), "offset 10: expected a graph inside 720 bytes, found "},
      {18, std::string("\0\0\0\0", 4), "offset 18: expected constants behind the graph and inside 720 bytes"},
      {22, std::string(8, '\xff'), "offset 18: expected constants behind the graph and inside 720 bytes"},
      {kGraph, std::string("\xff\xff\xff\x7f", 4), "offset 0: expected"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.offset);
    const std::string file =
        with_payload([&](std::string& payload) { payload.replace(row.offset, row.bytes.size(), row.bytes); });
    CHECK(told(file, {}).starts_with("error: m.pte: method 'forward', delegate 0 (XnnpackBackend): " +
                                     row.expected));
    CHECK(external_keys(opened_program(file)).has_value());
  }
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
