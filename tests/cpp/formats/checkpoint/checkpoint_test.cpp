// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/names.h"
#include "core/layout/same_bytes.h"
#include "test_errors.h"
#include "test_files.h"
#include "test_sources.h"
#include "test_tensor_files.h"

namespace etstream::checkpoint_test {
namespace {

CheckpointTensor bytes_tensor(const std::string& name, const std::string& data) {
  return {name, "U8", TensorLayout{ScalarType::kUInt8, {static_cast<std::int32_t>(data.size())}, {0}},
          source_of(data)};
}

TEST_CASE("a glob of many stars takes no longer than the product of the lengths") {
  std::string stars;
  for (int i = 0; i < 1000; ++i) stars += "*a";
  CHECK_FALSE(matches_glob(stars + "b", std::string(100'000, 'a')));
}

TEST_CASE("tensors of one name that differ in their layouts are told with both") {
  const auto merged = [](CheckpointTensor a, CheckpointTensor b) {
    a.name = b.name = "w";
    Checkpoint one;
    one.tensors = {std::move(a)};
    Checkpoint two;
    two.tensors = {std::move(b)};
    auto joined = join({one, two});
    REQUIRE(joined);
    return error_of(merge(*joined));
  };
  const std::string error = "kInvalidArgument: tensor 'w' is in memory and in memory with other layouts: ";
  const CheckpointTensor four = bytes_tensor("", "1234");
  const CheckpointTensor square = {"", "U8", TensorLayout{ScalarType::kUInt8, {2, 2}, {0, 1}},
                                   source_of("1234")};
  const CheckpointTensor one = {"", "I32", TensorLayout{ScalarType::kInt32, {1}, {0}}, source_of("1234")};
  const CheckpointTensor opaque = {"", "Q4_0", std::nullopt, source_of("1234")};
  const CheckpointTensor untyped = {"", "", std::nullopt, source_of("1")};
  const CheckpointTensor shaped = {"", "F4", std::nullopt, source_of("1234"),
                                   std::vector<std::uint64_t>{2, 4}};
  CheckpointTensor longer = shaped;
  longer.shape = std::vector<std::uint64_t>{4, 2};
  CheckpointTensor short_one = opaque;
  short_one.data = source_of("123");
  for (const CheckpointTensor& same : {four, opaque, shaped}) CHECK(merged(same, same) == "no error");
  struct Row {
    const CheckpointTensor& a;
    const CheckpointTensor& b;
    std::string layouts;
  };
  const std::string q = "Q4_0 without a layout, of 4 bytes";
  for (const Row& row :
       {Row{four, square, "uint8 [4] and uint8 [2, 2]"}, Row{one, four, "int32 [1] and uint8 [4]"},
        Row{four, opaque, "uint8 [4] and " + q}, Row{opaque, four, q + " and uint8 [4]"},
        Row{untyped, opaque, "data without a layout, of 1 byte and " + q},
        Row{shaped, longer,
            "F4 without a layout but [2, 4], of 4 bytes and F4 without a layout but [4, 2], of 4 bytes"},
        Row{opaque, short_one, q + " and Q4_0 without a layout, of 3 bytes"}}) {
    CHECK(merged(row.a, row.b) == exactly(error + row.layouts));
  }
}

TEST_CASE("numbers that have their scales beside them are not converted without them") {
  struct Row {
    std::string numbers;
    std::string scales;
    bool are_scaled = true;
  };
  const auto bytes = source_of("12345678");
  for (const Row& row : std::vector<Row>{{"w.weight", "w.weight_scale_inv"},
                                         {"w.weight", "w.weight_scale"},
                                         {"w.weight", "w.weight.absmax"},
                                         {"w.weight", "w.SCB"},
                                         {"w.weight", "w.scale"},
                                         {"w.qweight", "w.scales"},
                                         {"w.weight_packed", "w.weight_scale"},
                                         {"e.up_blocks", "e.up_scales"},
                                         {"e.up", "e.up_scale_inv"},
                                         {"w.W_q", "w.scale"},
                                         {"w.weight._data", "w.weight._scale"},
                                         {"w._weight_qdata", "w._weight_scale"},
                                         {"w.weight", "v.weight_scale", false},
                                         {"w.bias", "w.scale", false}}) {
    CAPTURE(row.numbers);
    CAPTURE(row.scales);
    Checkpoint checkpoint;
    checkpoint.tensors = {
        {row.numbers, "F8_E4M3", TensorLayout{ScalarType::kFloat8E4M3FN, {8}, {0}}, bytes},
        {row.scales, "F32", TensorLayout{ScalarType::kFloat32, {2}, {0}}, bytes},
        {"plain", "F32", TensorLayout{ScalarType::kFloat32, {2}, {0}}, bytes},
    };
    Checkpoint joined = join({checkpoint}).value();
    CHECK(error_of(convert(joined, {{"plain", ScalarType::kBFloat16}})) == "no error");
    REQUIRE(select(joined, {row.numbers, "plain"}));
    CHECK(convert(joined, {{"*", ScalarType::kBFloat16}}).has_value() != row.are_scaled);
    checkpoint.tensors[0] =
        checkpoint.tensors[2];  // floating-point numbers of a usual type mean what they say
    checkpoint.tensors[0].name = row.numbers;
    joined = join({checkpoint}).value();
    CHECK(error_of(convert(joined, {{"*", ScalarType::kBFloat16}})) == "no error");
  }
}

TEST_CASE("what safetensors can't hold is refused, and the error names the tensor") {
  const auto refused = [](CheckpointTensor tensor) {
    Checkpoint checkpoint;
    checkpoint.tensors = {std::move(tensor)};
    return error_of(plan_safetensors(checkpoint));
  };
  CHECK(refused({"q", "Q4_0", std::nullopt, source_of("1")}) ==
        containing("tensor 'q' is of type Q4_0, which"));
  CHECK(refused({"k", "", std::nullopt, source_of("1")}) == containing("tensor 'k' has no layout, which"));
  CHECK(refused({"c", "float32", TensorLayout{ScalarType::kFloat32, {1, 2, 2}, {0, 2, 1}},
                 source_of(patterned(16))}) ==
        containing("tensor 'c' has its elements in the order [0, 2, 1] of its dimensions"));
  CHECK(refused({"i", "qint8", TensorLayout{ScalarType::kQInt8, {1}, {0}}, source_of("1")}) ==
        containing("tensor 'i' is of type qint8, which safetensors has no name for"));
  CHECK(refused(bytes_tensor("\xff", "1")) == containing("is not UTF-8"));
}

/// An index and the shards that it names, in a folder.
class Shards {
 public:
  Shards() {
    write("a.safetensors", safetensors_file(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                            R"("y":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                            "12"));
    write("b.safetensors", safetensors_file(R"({"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "3"));
  }

  [[nodiscard]] Result<Checkpoint> open(const std::string& index,
                                        const OpenFile& open_file = &ByteSource::file) const {
    write("index.json", index);
    return open_checkpoint(folder_ / "index.json", {.open_file = open_file});
  }

 private:
  void write(const std::string& name, const std::string& content) const { put_file(folder_ / name, content); }

  TemporaryFolder folder_;
};

TEST_CASE("all files of an index, and of a split GGUF checkpoint, are opened as the caller says") {
  std::vector<std::string> opened;
  const auto open_file = [&](const std::string& path) {
    opened.push_back(path);
    return ByteSource::file(path);
  };
  const Shards shards;
  const auto of_index =
      shards.open(R"({"weight_map": {"y": "b.safetensors", "x": "a.safetensors"}})", open_file);
  REQUIRE_MESSAGE(of_index, of_index.error().message);
  CHECK(opened == of_index->files);
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const std::uint64_t i : {0U, 1U}) {
    files.push_back(folder / ("m-0000" + std::to_string(i + 1) + "-of-00002.gguf"));
    put_file(files.back(), split_gguf(i, 2, 2));
  }
  opened.clear();
  const auto of_split = open_checkpoint(files[0], {.open_file = open_file});
  REQUIRE_MESSAGE(of_split, of_split.error().message);
  CHECK(opened == files);
  CHECK(of_split->files == files);
  CHECK(error_of(shards.open("{}", [](const std::string&) -> Result<ByteSource> {
          return Error{ErrorCode::kInterrupted, "not now"};
        })) == exactly("kInterrupted: not now"));
}

TEST_CASE("a header as long as JSON's first bytes spell does not make a safetensors file an index") {
  for (const std::uint64_t size : {0x7b20ULL, 0x7b0920ULL, 0x7bULL}) {
    CAPTURE(size);
    std::string header = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    header.resize(static_cast<std::size_t>(size), ' ');
    const TemporaryFolder folder;
    put_file(folder / "x.safetensors", safetensors_file(header, "7"));
    const auto found = open_checkpoint(folder / "x.safetensors");
    REQUIRE_MESSAGE(found, found.error().message);
    REQUIRE(found->tensors.size() == 1);
    CHECK(text_of(found->tensors[0].data) == "7");
  }
}

TEST_CASE("an index that makes no sense is corrupt, and the error says why") {
  struct Row {
    std::string index;
    std::string error;
  };
  const Shards shards;
  const std::vector<Row> rows = {
      {"{}", "expected the index of a checkpoint, an object with weight_map"},
      {R"({"weight_map": 1})", "expected an object as weight_map, found an integer"},
      {R"({"weight_map": {"x": 1}})", "expected the name of a file in weight_map, found an integer"},
      {R"({"weight_map": {"x": {"y": "z"}}})", "expected the name of a file in weight_map, found an object"},
      {R"({"weight_map": {}, "weight_map": {}})", "expected weight_map once, found a key"},
      {R"({"weight_map": {"x": "/etc/passwd"}})", "a file beside it in weight_map, found '/etc/passwd'"},
      {R"({"weight_map": {"x": ".."}})", "a file beside it in weight_map, found '..'"},
      {R"({"weight_map": {"x": ""}})", "a file beside it in weight_map, found ''"},
      {R"({"weight_map": {"x": "a.safetensors\u0000"}})",
       "a file beside it in weight_map, found 'a.safetensors"},
      {R"({"weight_map": {"x": "a.safetensors", "x": "a.safetensors"}})", "tensor 'x' comes twice"},
      {R"({"weight_map": )", "not JSON"},
      {"{" + std::string(100, '['), "not JSON"},
      {R"({"a": )" + std::string(100, '['), "nested deeper"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.index);
    const auto found = shards.open(row.index);
    CHECK(code_of(found) == "kCorrupt");
    CHECK(error_of(found) == containing(row.error));
  }
  CHECK(code_of(shards.open(R"({"weight_map": {"x": "gone.safetensors"}})")) == "kNotFound");
  CHECK(error_of(shards.open(R"({"weight_map": {"x": "index.json"}})")) ==
        containing("index.json: is the index of a checkpoint, expected safetensors"));
}

}  // namespace
}  // namespace etstream::checkpoint_test
