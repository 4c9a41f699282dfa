// SPDX-License-Identifier: BSD-3-Clause
//
// The files with new weights are those that an export of the network with the new weights gives.
#include "etstream/reweight.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "files/origins/made_network.h"
#include "files/origins/weight_free.h"
#include "test_errors.h"
#include "test_files.h"

namespace etstream::reweight_test {
namespace {

using made::Place;

/// A program with what reweighting it takes.
struct Case {
  made::Program program;
  Checkpoint was;
  Checkpoint now;
  std::string data = {};
  std::vector<std::string> keep = {};
};

/// The program and the tensor data with new weights.
struct Files {
  std::string program;
  std::string data;
  std::size_t replaced = 0;
};

Result<Files> reweighted(const Case& given) {
  std::vector<TensorDataFile> files;
  if (!given.data.empty()) files.push_back(made::opened_data(given.data));
  std::vector<const TensorDataFile*> all;
  for (const TensorDataFile& file : files) all.push_back(&file);
  const ProgramFile program = made::opened(made::file(given.program));
  const auto planned = plan(Reweighting{&program, all, &given.was, &given.now, {}, given.keep});
  if (!planned) return planned.error();
  CHECK(planned->weights.size() == files.size());
  return Files{written(planned->program), files.empty() ? "" : written(planned->weights[0]),
               planned->replaced};
}

/// Checks that a case is refused, with this message.
void check_refused(const Case& given, const std::string& expected) {
  CHECK(error_of(reweighted(given)) == exactly(expected));
}

Case network() {
  const Checkpoint was = made::checkpoint(1);
  return {made::program_of(was), was, made::checkpoint(2), made::data_of(was)};
}

CheckpointTensor floats(const std::string& name, std::uint64_t seed, std::int32_t size = 4) {
  return made::tensor(name, {size}, made::floats(static_cast<std::size_t>(size), seed));
}

TEST_CASE(
    "payloads and keys become those of the new weights, in the program, in XNNPACK's payload and the data") {
  const Case given = network();
  const auto files = reweighted(given);
  REQUIRE_MESSAGE(files, full_message(files.error()));
  const std::string before = made::file(given.program);
  const std::string expected = made::file(made::program_of(given.now));
  CHECK((before != expected));
  CHECK((files->program == expected));
  CHECK((files->data == made::data_of(given.now)));
  CHECK(files->replaced == 10);
}

/// Returns the tensor in another type.
CheckpointTensor cast(CheckpointTensor tensor, ScalarType type) {
  tensor.data = source_of(made::bytes_after({{}, {tensor}}, 0, {CastStep{type}}));
  tensor.layout->scalar_type = type;
  tensor.type = name_of(type);
  return tensor;
}

TEST_CASE("a new tensor is not rounded on its way to a payload of a wider type") {
  const CheckpointTensor fine = made::tensor("w", {2, 4}, made::floats(8, 2));
  const CheckpointTensor was = cast(made::tensor("w", {2, 4}, made::floats(8, 1)), ScalarType::kBFloat16);
  const auto program_of = [](const CheckpointTensor& tensor, const std::vector<WeightStep>& steps) {
    made::Program out;
    const bool is_plain = steps.size() == 1;
    out.constants = {{made::bytes_after({{}, {tensor}}, 0, steps), {is_plain ? 2 : 4, is_plain ? 4 : 2}}};
    return out;
  };
  const CastStep wide{ScalarType::kFloat32};
  for (const std::vector<WeightStep>& steps :
       {std::vector<WeightStep>{wide}, {PermuteStep{{1, 0}}, wide}, {wide, PermuteStep{{1, 0}}}}) {
    const auto files = reweighted({program_of(was, steps), {{}, {was}}, {{}, {fine}}});
    REQUIRE_MESSAGE(files, full_message(files.error()));
    CHECK((files->program == made::file(program_of(fine, steps))));
  }
}

TEST_CASE("new tensors that are not as they were and reach no payload are told") {
  Case given = network();
  std::vector<std::string> told;
  const auto warnings = [&] {
    told.clear();
    const ProgramFile program = made::opened(made::file(given.program));
    const TensorDataFile data = made::opened_data(given.data);
    const Warn warn = [&](const Finding& warning) { told.push_back(warning.message); };
    CHECK(plan(Reweighting{&program, {&data}, &given.was, &given.now, warn}));
    return told;
  };
  const std::string begin =
      "weights.safetensors: expected its weights in payloads of bad or as they are in weights.safetensors, ";
  CHECK((warnings() == std::vector{begin + "found 1 tensor in neither: 'unused.weight'"}));
  given.now.tensors[made::kUnused] = given.was.tensors[made::kUnused];
  CHECK(warnings().empty());
  given.now.tensors[made::kUnused].layout = made::layout_of(ScalarType::kFloat32, {7, 1});
  CHECK((warnings() == std::vector{begin + "found 1 tensor in neither: 'unused.weight'"}));
  given.now.tensors[made::kUnused] = given.was.tensors[made::kUnused];
  given.now.tensors.push_back(floats("first.lora", 7));
  CHECK((warnings() == std::vector{begin + "found 1 tensor in neither: 'first.lora'"}));
  // A tensor that shares its bytes with one that is used goes where that one goes.
  given.now.tensors.back() = given.now.tensors[made::kTable];
  given.now.tensors.back().name = "head";
  given.was.tensors.push_back(given.was.tensors[made::kTable]);
  given.was.tensors.back().name = "head";
  given.program.constants[0].name = "table";
  CHECK(warnings().empty());
  given.now.tensors.back().data = source_of(made::floats(32, 99));
  CHECK((warnings() == std::vector{begin + "found 1 tensor in neither: 'head'"}));
}

TEST_CASE("weights that do not fit the program are refused") {
  Case given = network();
  given.data =
      made::tensor_data({{text_of(cast(given.was.tensors[made::kOutside], ScalarType::kFloat16).data),
                          {5},
                          "outside",
                          ScalarType::kFloat16}});
  CHECK(error_of(reweighted(given)) ==
        containing("key 'outside': expected float32 [5] as method 'forward' has it, found float16 [5]"));
}

TEST_CASE("a key that is no hash of its data stays") {
  Case given = network();
  const std::string key(64, 'a');
  given.program.constants[2].name = key;
  given.data = made::tensor_data({{made::bytes_after(given.was, made::kOutside, {}), {5}, key}});
  const auto files = reweighted(given);
  REQUIRE_MESSAGE(files, full_message(files.error()));
  CHECK((files->data == made::tensor_data({{made::bytes_after(given.now, made::kOutside, {}), {5}, key}})));
}

TEST_CASE("a tensor of another type is cast to that of the old one first") {
  Case given = network();
  for (CheckpointTensor& tensor : given.now.tensors) tensor = cast(tensor, ScalarType::kBFloat16);
  Checkpoint wide = given.now;
  for (CheckpointTensor& tensor : wide.tensors) tensor = cast(tensor, ScalarType::kFloat32);
  const auto files = reweighted(given);
  REQUIRE_MESSAGE(files, full_message(files.error()));
  CHECK((files->program == made::file(made::program_of(wide))));
}

TEST_CASE("tensors are found by name, wherever they are, and those that are not used may be missing") {
  Case given = network();
  std::swap(given.now.tensors[made::kTable], given.now.tensors[made::kUnused]);
  const std::string expected = made::file(made::program_of(made::checkpoint(2)));
  const auto swapped = reweighted(given);
  REQUIRE_MESSAGE(swapped, full_message(swapped.error()));
  CHECK((swapped->program == expected));
  given.now.tensors.erase(given.now.tensors.begin() + made::kTable);  // where the unused one is now
  const auto without = reweighted(given);
  REQUIRE_MESSAGE(without, full_message(without.error()));
  CHECK((without->program == expected));
}

TEST_CASE("payloads that the old checkpoint does not explain are refused") {
  Case given;
  given.program.constants = {{made::floats(4, 1), {4}, "w"}, {made::floats(6, 2), {6}, "v"}};
  given.was = {{"old.safetensors"}, {floats("w", 5), floats("u", 6)}};
  given.now = given.was;
  check_refused(
      given,
      "kUnsupported: old.safetensors: expected tensors that give constant 'w' of method 'forward', 16 "
      "bytes, found none that give its bytes; of as many elements, the nearest first, are 'w', 'u'; nor "
      "those of 1 more payload; if it is to stay as it is, name it with keep");
  given.program.constants.erase(given.program.constants.begin());
  check_refused(
      given,
      "kUnsupported: old.safetensors: expected tensors that give constant 'v' of method 'forward', 24 "
      "bytes, found none that give its bytes; if it is to stay as it is, name it with keep");
  given.program.constants.clear();
  given.program.delegates = {{"OtherBackend", "compiled"}};
  given.was.files.clear();
  check_refused(
      given,
      "kUnsupported: the old checkpoint: expected tensors that give method 'forward', delegate 0 "
      "(OtherBackend), 8 bytes, found what its backend compiled, which is not explained; if it is to "
      "stay as it is, name it with keep");
}

TEST_CASE("payloads that nothing explains stay if they are named, and no others") {
  Case given;
  given.program.constants = {{made::floats(4, 1), {4}, "mask"}, {made::floats(4, 2), {4}, "w"}};
  given.program.delegates = {{"OtherBackend", "compiled"}};
  given.was = {{}, {floats("w", 2)}};
  given.now = {{}, {floats("w", 3)}};
  const std::string delegate = "method 'forward', delegate 0 (OtherBackend)";
  for (const char* mask : {"constant 'mask' of method 'forward'", "mask"}) {
    given.keep = {delegate, mask};
    const auto files = reweighted(given);
    REQUIRE_MESSAGE(files, full_message(files.error()));
    made::Program expected = given.program;
    expected.constants[1].bytes = made::floats(4, 3);
    CHECK((files->program == made::file(expected)));
    CHECK(files->replaced == 1);
  }
  given.keep = {"mask"};
  CHECK(error_of(reweighted(given)) == containing("expected tensors that give " + delegate));
  const std::string expected =
      "kInvalidArgument: bad: expected the name of a payload that nothing explains, found ";
  given.keep = {"mask", "method 'forward', delegate 1"};
  check_refused(given, expected + "'method 'forward', delegate 1'; the nearest first: '" + delegate +
                           "', 'constant 'mask' of method 'forward''");
  given.keep = {"w"};
  CHECK(error_of(reweighted(given)) == containing(expected + "'w'"));
  given.program.delegates.clear();
  given.program.constants.erase(given.program.constants.begin());
  check_refused(given, expected + "'w'; all are explained");
}

TEST_CASE("frequencies become those of the new config, and stay if it does not say them") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "now");
  Case given;
  given.was = {{folder / "model.safetensors"}, {}};
  given.now = {{folder / "now/model.safetensors"}, {}};
  const auto put = [&](const std::string& path, const std::string& rope) {
    put_file(folder / path, text(R"({{"head_dim": 128{}}})", rope));
  };
  const auto frequencies = [](const Checkpoint& checkpoint) {
    return text_of((**read_frequencies(checkpoint)).at(0).data);
  };
  put("config.json", R"(, "rope_theta": 10000)");
  const std::string old = frequencies(given.was);
  given.program.constants = {{old, {64}}};
  const auto check = [&](const std::string& expected) {
    const auto files = reweighted(given);
    REQUIRE_MESSAGE(files, full_message(files.error()));
    made::Program program = given.program;
    program.constants[0].bytes = expected;
    CHECK((files->program == made::file(program)));
  };
  check(old);  // no config
  put("now/config.json", "");
  check(old);
  put("now/config.json", R"(, "rope_theta": 10000)");
  check(old);
  const std::string linear = R"(, "rope_scaling": {"type": "linear", "factor": 4})";
  put("now/config.json", R"(, "rope_theta": 10000)" + linear);
  check(frequencies(given.now));
  CHECK((frequencies(given.now) != old));
  // The C library and vectors round this one differently.
  put("now/config.json", R"(, "rope_theta": 1000000)");
  CHECK(error_of(reweighted(given)) == containing("which were equal and differ now"));
  for (const std::string& other :
       {linear, std::string(R"(, "rope_parameters": {"rope_type": "new", "factor": 2})")}) {
    put("now/config.json", other);
    CHECK(error_of(reweighted(given)) == containing("expected a tensor 'inverse frequencies of RoPE' as in"));
  }
  // The old ones may be known by their bytes alone.
  put("config.json", "");
  put("now/config.json", R"(, "rope_theta": 500000)");
  check(frequencies(given.now));
}

TEST_CASE("data that the program does not ask for is refused, with what it may be") {
  Case given = network();
  given.data = made::tensor_data({{made::bytes_after(given.was, made::kOutside, {}), {5}, "outside"},
                                  {made::floats(9, 5), {9}, "of another program"}});
  CHECK(
      error_of(reweighted(given)) ==
      containing("expected tensors that give named data 'of another program', 36 bytes, found none that give "
                 "its bytes; bad does not ask for it; if bad is shared by several programs, give these new "
                 "weights before they share it"));
}

TEST_CASE("scales that do not follow from the weights are refused, with what they may be") {
  Case given = network();
  // The integers are as they were, their scales are others: as HQQ would choose them.
  for (auto& [key, bytes] : given.program.named_data) {
    if (key.starts_with("scale_")) bytes[0] = static_cast<char>(bytes[0] ^ 1);
  }
  CHECK(error_of(reweighted(given)) ==
        containing("; scales that an export searched for, as HQQ does, do not follow from the weights"));
  given = network();
  given.was.tensors[made::kSecondBias] = floats("second.bias", 99, 2);
  CHECK(error_of(reweighted(given)) == containing("give bias of XNNFullyConnected 1"));
  CHECK(error_of(reweighted(given)) == containing("; scales that an export searched for"));
}

TEST_CASE("integers that follow a tensor, but for their scales, are told to be HQQ's") {
  Case given;
  given.was = {{}, {made::tensor("w", {4, 64}, made::floats(256, 1))}};
  given.now = given.was;
  const Quantization how = {256, -100, 100, 0};
  given.program.constants = {
      {made::bytes_after(given.was, 0, {QuantizeStep{how}}), {4, 64}, "", ScalarType::kInt8}};
  check_refused(
      given,
      "kUnsupported: the old checkpoint: expected tensors that give constant value 1 of method "
      "'forward', 256 bytes, found none that give its bytes; of as many elements, the nearest first, "
      "are 'w'; scales that an export searched for, as HQQ does, do not follow from the weights, such "
      "as those of the integers that follow 'w'; export_llama uses HQQ unless its configuration "
      "has quantization.use_hqq=False; if it is to stay as it is, name it with keep");
}

TEST_CASE("integers are replaced as they are, be it one byte, and payloads without keys may be equal") {
  const auto case_of = [](const std::string& bytes, std::int32_t size) {
    Case out;
    out.program.constants = {{bytes, {size}, "", ScalarType::kInt8}, {bytes, {size}, "", ScalarType::kInt8}};
    out.was.tensors = {made::tensor("t", {size}, bytes, ScalarType::kInt8)};
    return out;
  };
  for (const std::int32_t size : {1, 3}) {
    Case given = case_of(std::string("\7\1\2").substr(0, static_cast<std::size_t>(size)), size);
    const Case expected = case_of(std::string("\3\5\4").substr(0, static_cast<std::size_t>(size)), size);
    given.now = expected.was;
    const auto files = reweighted(given);
    REQUIRE_MESSAGE(files, full_message(files.error()));
    CHECK((files->program == made::file(expected.program)));
  }
}

TEST_CASE("a tensor that the new checkpoint lacks, or has in another shape or type, is refused") {
  Case given;
  given.program.constants = {{made::floats(4, 1), {4}}};
  given.was = {{"old.safetensors"}, {floats("w", 1)}};
  given.now = {{"new.safetensors"}, {floats("other", 2)}};
  check_refused(given,
                "kInvalidArgument: new.safetensors: expected a tensor 'w' as in old.safetensors, found none");
  given.now.tensors = {made::tensor("w", {2, 2}, made::floats(4, 2))};
  check_refused(
      given,
      "kInvalidArgument: new.safetensors: tensor 'w': expected float32 [4] as in old.safetensors, found "
      "float32 [2, 2]");
  given.now.tensors = {floats("w", 2)};
  given.now.tensors[0].layout->dim_order = {};
  CHECK(code_of(reweighted(given)) == exactly("kInvalidArgument"));
  given.now.tensors[0].layout.reset();
  given.now.tensors[0].type = "Q4_0";
  check_refused(
      given,
      "kInvalidArgument: new.safetensors: tensor 'w': expected float32 [4] as in old.safetensors, found "
      "Q4_0");
  given.now.tensors = {made::tensor("w", {4}, made::floats(4, 2), ScalarType::kInt32)};
  check_refused(given,
                "kInvalidArgument: new.safetensors: tensor 'w': expected float32 [4], found int32 [4]");
}

TEST_CASE("a payload that may be one of several tensors is replaced while they are equal") {
  Case given;
  given.program.constants = {{made::floats(4, 1), {4}}};
  given.was = {{"old.safetensors"}, {floats("a", 1), floats("b", 1)}};
  given.now = {{"new.safetensors"}, {floats("a", 2), floats("b", 2)}};
  const auto files = reweighted(given);
  REQUIRE_MESSAGE(files, full_message(files.error()));
  made::Program expected;
  expected.constants = {{made::floats(4, 2), {4}}};
  CHECK((files->program == made::file(expected)));
  given.now.tensors[1] = floats("b", 3);
  check_refused(given,
                "kInvalidArgument: new.safetensors: constant value 1 of method 'forward' may be 'a' or 'b', "
                "which were equal and differ now");
}

TEST_CASE("a payload that may be one tensor, or the rows of many, is replaced while these are the same") {
  // 65 equal rows, each of which may be any of the 65 others: more than 4,096 pieces.
  const auto of_rows = [](std::uint64_t last, std::uint64_t whole) {
    Checkpoint out{{"new.safetensors"}, {}};
    std::string all;
    for (int i = 0; i < 65; ++i) {
      out.tensors.push_back(made::tensor(std::to_string(i), {1, 4}, made::floats(4, i == 64 ? last : 1)));
      all += made::floats(4, whole);
    }
    out.tensors.push_back(made::tensor("w", {65, 4}, all));
    return out;
  };
  Case given;
  given.was = of_rows(1, 1);
  given.program.constants = {{text_of(given.was.tensors.back().data), {65, 4}}};
  given.now = of_rows(1, 1);
  CHECK(reweighted(given));
  const std::string refused =
      "kInvalidArgument: new.safetensors: constant value 1 of method 'forward' may be 'w' or many joined "
      "tensors, such as '";
  given.now = of_rows(1, 2);
  check_refused(given, refused + "0', which were equal and differ now");
  given.now = of_rows(2, 1);
  check_refused(given, refused + "64', which were equal and differ now");
  given.program.constants[0].name = "w";  // which says what is meant
  CHECK(reweighted(given));
}

TEST_CASE("data that two names share is replaced while the tensors of both names are equal") {
  TensorData shared;
  shared.buffers.push_back({source_of(made::floats(4, 1))});
  Case given;
  for (const char* name : {"a", "b"}) {
    given.program.constants.push_back({"", {4}, name, ScalarType::kFloat32, Place::kExternal});
    shared.entries.push_back({name, 0});
    shared.entries.back().layout = made::layout_of(ScalarType::kFloat32, {4});
  }
  given.data = written(plan(shared).value());
  given.was = {{"old.safetensors"}, {floats("a", 1), floats("b", 1)}};
  given.now = {{"new.safetensors"}, {floats("a", 2), floats("b", 2)}};
  CHECK(reweighted(given));
  given.now.tensors[1] = floats("b", 3);
  check_refused(
      given,
      "kInvalidArgument: new.safetensors: tensor 'a' may be 'a' or 'b', which were equal and differ now");
}

TEST_CASE("ones that may be a tensor or none must stay ones") {
  const std::string ones = made::bytes_of_numbers(std::vector<float>(4, 1));
  Case given;
  given.program.constants = {{ones, {4}}};
  given.was = {{"old.safetensors"}, {made::tensor("norm", {4}, ones)}};
  given.now = given.was;
  given.now.files = {"new.safetensors"};
  CHECK(reweighted(given));
  given.now.tensors = {floats("norm", 2)};
  check_refused(
      given,
      "kInvalidArgument: new.safetensors: constant value 1 of method 'forward' may be 'norm' or the "
      "number 1 everywhere, which were equal and differ now");
}

/// A program whose linear layer has these constants as filter and bias.
made::Program linear(const std::string& filter, const std::string& bias) {
  using namespace made_xnnpack;   // NOLINT: their names are what this is about
  using namespace xnnpack_graph;  // NOLINT
  XNNGraphT graph = empty_graph();
  made::Program out;
  out.named_data = {{made::hash_of(filter), filter}, {made::hash_of(bias), bias}};
  for (const std::uint32_t id : {1U, 2U}) {
    const std::string& key = out.named_data[id - 1].first;
    add_value(graph, tensor_of(id, XNNDatatype_xnn_datatype_fp32, {4}, add_constant(graph, key, 16)));
  }
  add_linear(graph, 1, 2, 9);
  out.delegates = {{"XnnpackBackend", payload_of(graph)}};
  return out;
}

TEST_CASE("two payloads that become equal are refused where hashes are their keys") {
  Case given;
  given.program = linear(made::floats(4, 1), made::floats(4, 2));
  given.was = {{"old.safetensors"}, {floats("a", 1), floats("b", 2)}};
  given.now = {{"new.safetensors"}, {floats("a", 3), floats("b", 4)}};
  CHECK(reweighted(given));
  given.now.tensors[1] = floats("b", 3);
  check_refused(
      given,
      "kInvalidArgument: bad: expected filter of XNNFullyConnected 0 in method 'forward', delegate 0 "
      "(XnnpackBackend) and bias of XNNFullyConnected 0 in method 'forward', delegate 0 (XnnpackBackend) "
      "to differ, found the same bytes for both in new.safetensors: an export would store them once");
}

TEST_CASE("a payload that becomes equal to one that stays is refused, too") {
  const std::string zeros(16, '\0');
  Case given;
  given.program = linear(made::floats(4, 1), zeros);  // a bias that an export has added
  given.was = {{"old.safetensors"}, {floats("a", 1)}};
  given.now = {{"new.safetensors"}, {floats("a", 3)}};
  CHECK(reweighted(given));
  given.now.tensors = {made::tensor("a", {4}, zeros)};
  CHECK(
      error_of(reweighted(given)) ==
      containing(
          "expected bias of XNNFullyConnected 0 in method 'forward', delegate 0 (XnnpackBackend) and filter "
          "of XNNFullyConnected 0"));
}

TEST_CASE("quantized weights of two values are no mask") {
  using namespace made_xnnpack;   // NOLINT: their names are what this is about
  using namespace xnnpack_graph;  // NOLINT
  XNNGraphT graph = empty_graph();
  PerTensorQuantT scaled;
  scaled.scale = 0.5F;
  add_scaled(graph, tensor_of(1, XNNDatatype_xnn_datatype_qint8, {2, 4}, add_inner_constant(graph, 0, 8)),
             scaled);
  Case given;
  given.program.delegates = {
      {"XnnpackBackend", payload_of(graph, std::string("\x7f\x01\x01\x7f\x7f\x01\x7f\x01", 8))}};
  given.was = {{"old.safetensors"}, {floats("a", 1, 8)}};
  given.now = given.was;
  CHECK(error_of(reweighted(given)) ==
        containing("tensors that give a constant in method 'forward', delegate 0 (XnnpackBackend), 8 bytes"));
}

TEST_CASE("payloads that overlap are refused") {
  using namespace made_xnnpack;   // NOLINT: their names are what this is about
  using namespace xnnpack_graph;  // NOLINT
  const std::string bytes = made::floats(4, 1);
  for (const std::uint64_t offset : {0U, 8U}) {
    XNNGraphT graph = empty_graph();
    add_value(graph, tensor_of(1, XNNDatatype_xnn_datatype_fp32, {4}, add_inner_constant(graph, 0, 16)));
    add_value(graph, tensor_of(2, XNNDatatype_xnn_datatype_fp32, {2}, add_inner_constant(graph, offset, 8)));
    Case given;
    given.program.delegates = {{"XnnpackBackend", payload_of(graph, bytes)}};
    given.was = {{"old.safetensors"},
                 {made::tensor("a", {4}, bytes), made::tensor("b", {2}, bytes.substr(offset, 8))}};
    given.now = given.was;
    CHECK(error_of(reweighted(given)) ==
          containing("expected payloads and keys that do not overlap, found one"));
  }
}

TEST_CASE("weights that can't be quantized are refused") {
  Case given = network();
  std::vector<float> infinite = made::numbers(128, 1);
  infinite[5] = std::numeric_limits<float>::infinity();
  given.now.tensors[made::kWeight] = made::tensor("first.weight", {4, 32}, made::bytes_of_numbers(infinite));
  CHECK(error_of(reweighted(given)) == exactly("kInvalidArgument: memory: tensor 'first.weight': elements 0 "
                                               "to 15 are to be quantized: expected numbers, "
                                               "found an infinity or a NaN"));
}

/// A network whose shape a seed says: which tensors are equal, negated, doubled or transposed ones of others
/// when it has `relations`, and what a program makes of them.
class RandomNetwork {
 public:
  RandomNetwork(std::uint64_t shape, std::uint64_t values, bool has_relations) : random_(shape) {
    for (int i = 0; i < 6; ++i)
      add(std::string(1, static_cast<char>('f' - i)), {4, 4}, values, has_relations);
    for (const std::string norm : {"m", "n"}) {
      for (const char* part : {".bias", ".running_mean", ".weight"}) {
        add(norm + part, {4}, values, has_relations);
      }
      // The variances are positive.
      const bool is_equal = random_.below(2) == 0 && has_relations;
      std::vector<float> variance = made::numbers(4, is_equal ? values : values + norms_.size());
      for (float& each : variance) each = each * each + 0.5F;
      weights_.tensors.push_back(made::tensor(norm + ".running_var", {4}, made::bytes_of_numbers(variance)));
      const std::size_t last = weights_.tensors.size() - 1;
      norms_.push_back(
          {.mean = last - 2, .variance = last, .weight = last - 1, .bias = last - 3, .epsilon = 1e-5F});
    }
    // Integers of a matrix with a norm are often those without: it scales rows, as their scales do.
    const bool has_norms = random_.below(2) == 0;
    const Quantization rows{4, -128, 127, std::numeric_limits<float>::min()};
    for (int i = 0; i < 4; ++i) {
      switch (random_.below(5)) {
        case 0:
          add_payload({{matrix(), {}}}, {4, 4});
          break;
        case 1:
          add_payload({{matrix(), {PermuteStep{{1, 0}}}}}, {4, 4});
          break;
        case 2:
          add_payload({{matrix(), {}}, {matrix(), {}}, {matrix(), {}}}, {12, 4});
          break;
        case 3:
          add_payload({{matrix(), {}}}, {4, 4}, true);
          break;
        default: {
          TensorSteps integers{matrix(), {QuantizeStep{rows}}};
          if (has_norms) integers.steps.insert(integers.steps.begin(), norms_.back());
          add_payload({integers}, {4, 4}, false, ScalarType::kInt8);
          add_payload(*scales_of(WeightSteps{integers}, ScalarType::kFloat32), {4});
        }
      }
    }
    add_layers();
  }

  [[nodiscard]] const Checkpoint& weights() const noexcept { return weights_; }
  [[nodiscard]] const made::Program& program() const noexcept { return program_; }

 private:
  std::size_t matrix() { return random_.below(6); }

  void add(const std::string& name, const std::vector<std::int32_t>& sizes, std::uint64_t values,
           bool has_relations) {
    const bool is_matrix = sizes.size() == 2;
    std::vector<float> numbers = made::numbers(is_matrix ? 16 : 4, values * 100 + weights_.tensors.size());
    const std::uint64_t relation = random_.below(6);
    const std::size_t other = is_matrix ? random_.below(6) : 6 + random_.below(8);
    const bool is_there = other < weights_.tensors.size() && !weights_.tensors[other].name.ends_with("_var");
    if (has_relations && is_there && relation < (is_matrix ? 4 : 3)) {
      std::string bytes = text_of(weights_.tensors[other].data);
      if (relation == 3) bytes = made::bytes_after(weights_, other, {PermuteStep{{1, 0}}});
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = get_at<float>(bytes, 4 * i) * (relation == 1 ? -1.0F : relation == 2 ? 2.0F : 1.0F);
      }
    }
    weights_.tensors.push_back(made::tensor(name, sizes, made::bytes_of_numbers(numbers)));
  }

  /// Adds a constant, unless one without a name has its bytes.
  void add_payload(const WeightSteps& steps, const std::vector<std::int32_t>& sizes, bool is_named = false,
                   ScalarType type = ScalarType::kFloat32) {
    made::Constant constant{made::bytes_after(weights_, steps), sizes, "", type};
    if (is_named) constant.name = weights_.tensors[steps.front().tensor].name;
    for (const made::Constant& other : program_.constants) {
      if (other.bytes == constant.bytes && other.name == constant.name) return;
    }
    program_.constants.push_back(std::move(constant));
  }

  /// Adds linear layers with batch norms behind them. Data that several have is there once.
  void add_layers() {
    using namespace made_xnnpack;   // NOLINT: their names are what this is about
    using namespace xnnpack_graph;  // NOLINT
    XNNGraphT graph = empty_graph();
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      NormStep norm = norms_[random_.below(2)];
      norm.has_bias = false;
      const std::string filter = made::bytes_after(weights_, matrix(), {norm});
      norm.part = NormStep::Part::kLinearBias;
      const std::string bias = made::bytes_after(weights_, norm.mean, {norm});
      for (const std::string& bytes : {filter, bias}) {
        const std::string key = made::hash_of(bytes);
        const std::pair<std::string, std::string> named(key, bytes);
        if (std::ranges::find(program_.named_data, named) == program_.named_data.end()) {
          program_.named_data.push_back(named);
        }
        const std::vector<std::uint32_t> sizes(bytes.size() == 64 ? 2 : 1, 4);
        const std::uint32_t id = 2 * layer + (bytes.size() == 64 ? 1 : 2);
        add_value(graph, tensor_of(id, XNNDatatype_xnn_datatype_fp32, sizes,
                                   add_constant(graph, key, bytes.size())));
      }
      add_linear(graph, 2 * layer + 1, 2 * layer + 2, 9);
    }
    program_.delegates = {{"XnnpackBackend", payload_of(graph)}};
  }

  testing::SeededRandom random_;
  Checkpoint weights_;
  std::vector<NormStep> norms_;
  made::Program program_;
};

TEST_CASE(
    "tensors that have been equal, negated, doubled or transposed ones of others are right or refused") {
  std::size_t refused = 0;
  std::size_t replaced = 0;
  for (std::uint64_t shape = 0; shape < 300; ++shape) {
    CAPTURE(shape);
    const RandomNetwork was(shape, 1, true);
    for (const bool stay_related : {true, false}) {
      const RandomNetwork now(shape, 2, stay_related);
      const auto files = reweighted({was.program(), was.weights(), now.weights()});
      if (files) {
        CHECK((files->program == made::file(now.program())));
        ++replaced;
      } else {
        CHECK_FALSE(stay_related);
        CHECK(error_of(files) == containing("which were equal and differ now"));
        ++refused;
      }
    }
  }
  CHECK(refused > 100);
  CHECK(replaced > 320);
}

}  // namespace
}  // namespace etstream::reweight_test
