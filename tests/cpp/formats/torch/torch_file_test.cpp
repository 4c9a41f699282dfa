// SPDX-License-Identifier: BSD-3-Clause
#include "formats/torch/torch_file.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "etstream/checkpoint.h"
#include "etstream/sink.h"
#include "file_bytes.h"
#include "formats/torch/pickle.h"
#include "test_errors.h"
#include "test_paths.h"
#include "test_sources.h"
#include "test_torch_files.h"

namespace etstream::torch_file_test {
namespace {

Result<TorchArchive> open(const ZipMembers& members) {
  return open_torch_archive(source_of(zip_of(members)));
}

TEST_CASE("members in no folder, or in two, are refused") {
  const std::string error =
      "kUnsupported: memory: expected members in one folder, as torch writes them, found ";
  CHECK(error_of(open({{"data.pkl", "N."}})) == exactly(error + "'data.pkl'"));
  CHECK(error_of(open({{"a/data.pkl", "N."}, {"b/data.pkl", "N."}})) == exactly(error + "'b/data.pkl'"));
  CHECK(error_of(open({{"a/data.pkl", "N."}, {"ab/data.pkl", "N."}})) == exactly(error + "'ab/data.pkl'"));
  CHECK(error_of(open({{"a/data.pkl", "N."}, {"a", ""}})) == exactly(error + "'a'"));
}

TEST_CASE("bytes are little-endian, as the archive says or does not say") {
  const auto with = [](const std::string& order) {
    return open({{"a/byteorder", order}, {"a/data.pkl", "N."}});
  };
  CHECK(with("little"));
  CHECK(open({{"a/data.pkl", "N."}}));
  CHECK(error_of(open({{"a/BYTEORDER", "little"}, {"a/data.pkl", "N."}})) ==
        containing("kCorrupt: memory: expected 'byteorder', as torch finds it in whatever letters, found "
                   "'BYTEORDER'"));
  for (const std::string order : {"big", "", "littl", "little\n", "little\n\n", "LITTLE"}) {
    CAPTURE(order);
    CHECK(error_of(with(order)) ==
          containing("kUnsupported: memory: expected 'little' as its byteorder, found '" +
                     (order.starts_with("little") ? "little\\x0a" : order) + "'; load it in "));
  }
}

const TorchType* type(const char* name) { return torch_type_of_dtype(name); }

TEST_CASE("elements that are not inside their storage are corrupt, at every limit of integers") {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 62;
  constexpr std::uint64_t kMost = INT64_MAX;
  const ByteSource storage = source_of("0123456789abcdef");
  struct Bad {
    TorchElements elements;
    std::string error;
  };
  const std::string of = "kCorrupt: memory: tensor 't' of float32 ";
  const std::string outside = " on are not all inside its 16 bytes";
  const std::string one = "elements of 4 bytes in 1 dimensions ";
  for (const Bad& bad :
       {Bad{{type("float32"), 0, {5}, {1}}, "[5]: " + one + "from offset 0" + outside},
        Bad{{type("float32"), 3, {2}, {1}}, "[2]: " + one + "from offset 12" + outside},
        Bad{{type("float32"), 4, {}, {}}, "[]: elements of 4 bytes in 0 dimensions from offset 16" + outside},
        Bad{{type("float32"), 0, {2, 2}, {1, 3}},
            "[2, 2]: elements of 4 bytes in 2 dimensions from offset 0" + outside},
        Bad{{type("float32"), kMost, {1}, {1}}, "[1]: its offset is not inside the storage"},
        Bad{{type("float32"), kLarge, {1}, {1}}, "[1]: its offset is not inside the storage"},
        Bad{{type("float32"), kLarge - 1, {1}, {1}},
            "[1]: " + one + "from offset 18446744073709551612" + outside},
        Bad{{type("float32"), 0, {2}, {kLarge}}, "[2]: a stride is not inside the storage"},
        Bad{{type("float32"), 0, {2}, {kMost}}, "[2]: a stride is not inside the storage"},
        Bad{{type("float32"), 0, {2}, {kLarge / 2 - 1}}, "[2]: " + one + "from offset 0" + outside},
        Bad{{type("float32"), 0, {kLarge}, {0}}, "[4611686018427387904]: " + one + "take 2^63 bytes or more"},
        Bad{{type("float32"), 0, {kLarge, kLarge}, {0, 0}}, " take 2^63 bytes or more"},
        Bad{{type("float32"), 0, {1}, {}},
            "[1]: " + one + "are not 1 to 16 bytes each, with a stride for each"},
        Bad{{type("float32"), 0, {}, {1}},
            "[]: elements of 4 bytes in 0 dimensions are not 1 to 16 bytes each"}}) {
    CAPTURE(bad.elements.offset);
    CHECK(error_of(tensor_in(storage, "t", bad.elements)) == containing(of));
    CHECK(error_of(tensor_in(storage, "t", bad.elements)) == containing(bad.error));
  }
  CHECK(error_of(tensor_in(storage, "t", {type("float4_e2m1fn_x2"), 0, {0, 2 * kLarge}, {1, 1}})) ==
        containing("float4_e2m1fn_x2 [0, 9223372036854775808]: a dimension is too large"));
}

using pickled::dict;
using pickled::integer;
using pickled::small_tensor;
using pickled::storage;
using pickled::tensor;
using pickled::whole;
using std::string_literals::operator""s;

const std::string kEight = "01234567";  // the bytes of small_tensor()

Result<std::vector<CheckpointTensor>> open(const std::string& value,
                                           const ZipMembers& members = {{"data/0", kEight}}) {
  return open_torch_file(source_of(torch_file(whole(value), members)));
}

ByteSource golden(const std::string& name) {
  auto file = ByteSource::file(kGoldenDir + "/torch_files/" + name);
  REQUIRE_MESSAGE(file, file.error().message);
  return std::move(file).value();
}

std::map<std::string, CheckpointTensor> tensors_of(const ByteSource& file) {
  auto tensors = open_torch_file(file);
  REQUIRE_MESSAGE(tensors, tensors.error().message);
  std::map<std::string, CheckpointTensor> out;
  for (CheckpointTensor& each : *tensors) out.emplace(each.name, std::move(each));
  return out;
}

std::string floats(const std::vector<float>& numbers) { return text_of(std::as_bytes(std::span(numbers))); }

TEST_CASE("each type that torch saves is read with its name and its bytes") {
  const auto tensors = tensors_of(golden("every_type.pth"));
  CHECK(tensors.size() == 22);
  for (const auto& tensor : tensors) {
    const auto& name = tensor.first;
    const auto& found = tensor.second;
    CAPTURE(name);
    const bool is_f4 = name == "float4_e2m1fn_x2";
    CHECK(found.type == (is_f4 ? "F4" : name == "float8_e8m0fnu" ? "F8_E8M0" : name));
    const TorchType* const type = torch_type_of_dtype(name);
    REQUIRE(type != nullptr);
    std::string expected;
    for (std::uint64_t i = 0; i < type->item_size; ++i) expected += "\0\1"s;
    CHECK(text_of(found.data) == expected);
    if (type->type) {
      CHECK(found.layout == TensorLayout{*type->type, {2}, {0}});
    } else {
      CHECK(found.shape == std::vector<std::uint64_t>{is_f4 ? 4U : 2U});
    }
  }
}

TEST_CASE("what torch saves by each protocol is the same: shared, strided and nested tensors") {
  for (const std::string name : {"protocol_2.pth", "protocol_3.pth", "protocol_4.pth", "protocol_5.pth"}) {
    CAPTURE(name);
    const ByteSource file = golden(name);
    const auto tensors = tensors_of(file);
    std::string names;
    for (const auto& [each, found] : tensors) names += each + " ";
    CHECK(names ==
          "größe.1 größe.7 model.bias model.weight parameter shared.0 shared.1.0 shared.1.1 shared.1.2 ");
    const auto& whole_matrix = tensors.at("model.weight");
    CHECK(whole_matrix.layout == TensorLayout{ScalarType::kFloat32, {2, 3}, {0, 1}});
    CHECK(text_of(whole_matrix.data) == floats({0, 1, 2, 3, 4, 5}));
    for (const std::string same : {"parameter", "shared.0"}) {
      CHECK(tensors.at(same).data.offset_in(file) == whole_matrix.data.offset_in(file));
    }
    CHECK(text_of(tensors.at("shared.1.0").data) == floats({3, 4, 5}));
    CHECK(tensors.at("shared.1.0").data.offset_in(file) == whole_matrix.data.offset_in(file).value() + 12);
    CHECK(text_of(tensors.at("shared.1.1").data) == floats({0, 3, 1, 4, 2, 5}));
    CHECK(tensors.at("shared.1.1").layout->sizes == std::vector<std::int32_t>{3, 2});
    CHECK(text_of(tensors.at("shared.1.2").data) == floats({0, 2, 3, 5}));
    CHECK(text_of(tensors.at("größe.7").data) == little_endian(std::uint64_t{1} << 40, 8));
    CHECK(tensors.at("größe.7").layout == TensorLayout{ScalarType::kInt64, {}, {}});
    CHECK(tensors.at("größe.1").layout == TensorLayout{ScalarType::kInt8, {0, 3}, {0, 1}});
  }
}

/// Returns an archive of torch.export.save, whose weights these entries describe, with members beside that.
std::string exported(const std::string& entries, const ZipMembers& members) {
  ZipMembers all = {{"m/archive_format", "pt2"},
                    {"m/data/weights/model_weights_config.json", R"({"config": {)" + entries + "}}"}};
  for (const auto& [name, data] : members) all.emplace_back("m/data/weights/" + name, data);
  return zip_of(all);
}

std::string pickled_entry(const std::string& name, const std::string& member) {
  return "\"" + name + R"(": {"path_name": ")" + member + R"(", "use_pickle": true})";
}

TEST_CASE("a pickled object of an exported program that is no tensor, or several, is refused") {
  const auto error = [](const std::string& member) {
    return error_of(
        open_torch_file(source_of(exported(pickled_entry("w", "weight_0"), {{"weight_0", member}}))));
  };
  const std::string refused =
      "kUnsupported: memory: 'w' is not a tensor, expected one in 'data/weights/weight_0'";
  const ZipMembers data = {{"data/0", kEight}};
  const std::string t = small_tensor();
  CHECK(error(torch_file(whole(t), data)) == "no error");
  CHECK(error(torch_file(whole(dict("U\1a" + t + "U\1b" + t)), data)) == exactly(refused));
  CHECK(error(torch_file(whole("N"), data)) == exactly(refused));
  CHECK(error(zip_of({{"archive/version", "3\n"}})) == exactly(refused));
  CHECK(error("no archive") == containing("expected the end record of a zip archive"));
  CHECK(error(torch_file(whole(t), {})) ==
        containing("expected 8 bytes for tensor 'tensor' as data/0, found no such member"));
}

TEST_CASE("tensors of an exported program that are not described, or not there, are refused") {
  const auto error = [](const std::string& entries) {
    return error_of(open_torch_file(source_of(exported(entries, {{"weight_0", kEight}}))));
  };
  const auto entry = [](const std::string& meta) {
    return R"("w": {"path_name": "weight_0", "use_pickle": false, "tensor_meta": )" + meta + "}";
  };
  const std::string sizes = R"("sizes": [{"as_int": 2}], "strides": [{"as_int": 1}])";
  const std::string floats = R"({"dtype": 7, )" + sizes;
  CHECK(error(entry(floats + "}")) == "no error");
  CHECK(error(entry(floats + R"(, "layout": 7})")) == "no error");
  CHECK(error(entry(floats + R"(, "layout": 6})")) == containing("expected a strided layout, 7"));
  CHECK(error(entry(floats + R"(, "layout": "7"})")) == containing("expected a strided layout, 7"));
  for (const char* const other : {"0", "14", "36", "-1", "\"7\""}) {
    CAPTURE(other);
    CHECK(error(entry(R"({"dtype": )" + std::string(other) + "}")) ==
          containing("expected the number of a type that torch 2.13 has"));
  }
  const auto dimensions = [&](int count) {
    return R"({"dtype": 1, "sizes": [)" + std::string(R"({"as_int": 0})") +
           repeated_text(R"(, {"as_int": 0})", count - 1) + R"(], "strides": [{"as_int": 1})" +
           repeated_text(R"(, {"as_int": 1})", count - 1) + "]}";
  };
  CHECK(error(entry(dimensions(64))) == "no error");
  CHECK(error(entry(dimensions(65))) == containing("expected at most 64 dimensions"));
  for (const char* const other : {"-1", "\"2\""}) {
    CHECK(error(entry(R"({"dtype": 7, "sizes": [{"as_int": )" + std::string(other) + "}]}")) ==
          containing("expected an integer that is not negative as as_int"));
  }
  // Other members are left aside.
  CHECK(error(R"("w": {"path_name": "weight_0", "a": "b", "c": true, "tensor_meta": {"dtype": 7, "sizes": )"
              R"([{"as_int": 2, "d": 3}], "strides": [{"as_int": 1}]}})") == "no error");
  const std::string no_tensor =
      "kUnsupported: memory: 'w' is not a tensor, expected one in 'data/weights/weight_0'";
  CHECK(error(entry("null")) == exactly(no_tensor));
  CHECK(error(entry("{" + sizes + "}")) == exactly(no_tensor));
  CHECK(error(R"("w": {"path_name": "weight_1"})") ==
        exactly("kCorrupt: memory: expected member 'data/weights/weight_1' for tensor 'w', found none"));
  CHECK(error(entry(floats + "}") + "," + entry(floats + "}")) ==
        exactly("kCorrupt: memory: tensor 'w' comes twice"));
}

/// Returns an archive of torch.export.save with two models, one of this name and "b". Each has these weights.
std::string of_two_models(const std::string& name, const std::string& entries) {
  const std::string config = R"({"config": {)" + entries + "}}";
  return zip_of({{"m/archive_format", "pt2"},
                 {"m/data/weights/" + name + "_weights_config.json", config},
                 {"m/data/weights/b_weights_config.json", config},
                 {"m/data/weights/weight_0", kEight}});
}

TEST_CASE("weights of several models have the names of these, as far as their length is in proportion") {
  const auto entry = [](int number) {
    return (number == 0 ? "" : ",") + text(R"("{}")", number) +
           R"(: {"path_name": "weight_0", "tensor_meta": {"dtype": 1, "sizes": [], "strides": []}})";
  };
  std::string names;
  for (const auto& each : tensors_of(source_of(of_two_models("a", entry(0) + entry(1)))))
    names += each.first + " ";
  CHECK(names == "a.0 a.1 b.0 b.1 ");
  std::string entries;
  for (int i = 0; i < 100; ++i) entries += entry(i);
  CHECK(error_of(open_torch_file(source_of(of_two_models(std::string(50'000, 'a'), entries)))) ==
        containing("kTooLarge: memory: expected payloads that share "));
}

struct BadFile {
  std::string value;
  std::string error;
};

void check_all_bad(const std::string& code, const std::vector<BadFile>& files) {
  for (const BadFile& bad : files) {
    CAPTURE(bad.value.substr(0, 1000));
    CHECK(error_of(open(bad.value)) == containing(code + ": memory: " + bad.error));
  }
}

TEST_CASE("names that are none, or that two tensors have, are refused") {
  const std::string t = small_tensor();
  const std::string key = " with a key that is no text and no integer; name its tensors by text";
  check_all_bad("kUnsupported",
                {
                    {dict("N" + t), "has a dict in ''" + key},
                    {dict("U\1a" + dict("F1.5\n" + t)), "has a dict in 'a'" + key},
                    {dict("K\1" + t + "F1\nN"), "has a dict in ''" + key},
                    {dict(")" + dict("")), "has a dict in ''" + key},
                    {dict("U\1a" + storage("FloatStorage", "0", 2)),
                     "has a storage by itself as 'a', whose shape is not known; save a tensor"},
                });
  check_all_bad("kCorrupt",
                {
                    {dict("U\1a" + t + "U\1a" + t), "has a dict in '' with key 'a' twice"},
                    {dict("U\1a" + t + "U\1aN"), "has a dict in '' with key 'a' twice"},
                    {dict("U\1a" + dict("K\1" + t + "\x88N")), "has a dict in 'a' with key 1 twice"},
                    {dict("U\3" + "a.b"s + t + "U\1a" + dict("U\1b" + t)), "tensor 'a.b' comes twice"},
                    {dict("K\1" + t + "U\1" + "1"s + t), "tensor '1' comes twice"},
                });
}

TEST_CASE("storages that are not there, or too small for what the pickle says, are corrupt") {
  const auto with = [](const std::string& one, const ZipMembers& members) {
    return error_of(open(dict("U\1a" + one), members));
  };
  const std::string expected = "kCorrupt: memory: expected ";
  CHECK(with(small_tensor(), {}) ==
        exactly(expected + "8 bytes for tensor 'a' as data/0, found no such member"));
  CHECK(with(small_tensor(), {{"data/00", kEight}, {"0", kEight}}) ==
        exactly(expected + "8 bytes for tensor 'a' as data/0, found no such member"));
  CHECK(with(small_tensor(), {{"data/0", "0123456"}}) ==
        exactly(expected + "8 bytes for tensor 'a' as data/0, found 7"));
  CHECK(with(tensor(storage("DoubleStorage", "../x\n", INT64_MAX), 0, {1}, {1}), {{"data/0", kEight}}) ==
        exactly(expected + "fewer than 2^64 bytes for tensor 'a' as data/../x\\x0a, found no such member"));
  CHECK(
      with(tensor(storage("DoubleStorage", "0", std::int64_t{1} << 61), 0, {1}, {1}), {{"data/0", kEight}}) ==
      exactly(expected + "fewer than 2^64 bytes for tensor 'a' as data/0, found 8"));
  // Bytes beyond the size in the pickle are no part of the storage.
  CHECK(with(tensor(storage("FloatStorage", "0", 1), 0, {2}, {1}), {{"data/0", kEight}}) ==
        containing("kCorrupt: memory: tensor 'a' of float32 [2]: "));
  CHECK(with(tensor(storage("FloatStorage", "0", 2), 1, {2}, {1}), {{"data/0", kEight}}) ==
        containing("kCorrupt: memory: tensor 'a' of float32 [2]: "));
}

TEST_CASE(
    "containers in circles, deep ones and those that multiply are refused in time that the pickle bounds") {
  constexpr int kMany = 100'000;
  std::string doubled = "]q\1" + small_tensor() + "a";
  for (char i = 1; i < 100; ++i) doubled += "]("s + "h" + i + "h" + i + "eq" + static_cast<char>(i + 1);
  const std::string save = "; save a dict of tensors";
  check_all_bad("kTooLarge", {
                                 {"]q\1h\1a", "its pickle has the same containers over and over" + save},
                                 {"}q\1U\1ah\1s", "its pickle has the same containers over and over" + save},
                                 {"]q\1h\1a" + repeated_text("N0", 100),
                                  "its pickle has containers more than 64 deep" + save},
                                 {"]q\1](h\1h\1eq\2h\1h\2a0", "its pickle has "},
                                 {repeated_text("](", kMany) + repeated_text("e", kMany),
                                  "its pickle has containers more than 64 deep"},
                                 {doubled, "its pickle has "},
                                 {"](" + repeated_text("]q\1(", 1) + repeated_text("N", 1000) + "e" +
                                      repeated_text("h\1", 5000) + "e",
                                  "its pickle has the same containers over and over" + save},
                                 {"](}T" + little_endian(100'000, 4) + std::string(100'000, 'n') + "q\1]s" +
                                      repeated_text("}h\1]s", kMany) + "e",
                                  "its pickle has names that grow with the depth of its containers" + save},
                             });
}

Checkpoint checkpoint_of(std::vector<CheckpointTensor> tensors) { return {{}, std::move(tensors)}; }

CheckpointTensor tensor_of(const std::string& name, ScalarType type, std::vector<std::int32_t> sizes,
                           const ByteSource& data) {
  std::vector<std::uint8_t> order;
  for (std::size_t i = 0; i < sizes.size(); ++i) order.push_back(static_cast<std::uint8_t>(i));
  return {name, "", TensorLayout{type, std::move(sizes), std::move(order)}, data};
}

/// Returns the bytes of the file that is planned.
ByteSource written(const Checkpoint& checkpoint) {
  const auto plan = plan_torch_file(checkpoint);
  REQUIRE_MESSAGE(plan, plan.error().message);
  return source_of(text_of(source_of(*plan).value()));
}

TEST_CASE("the pickle that is written is the one that torch writes, for each type") {
  auto tensors = open_torch_file(golden("every_type.pth"));
  REQUIRE_MESSAGE(tensors, tensors.error().message);
  const auto ours = open_torch_archive(written(checkpoint_of(*tensors)));
  const auto theirs = open_torch_archive(golden("every_type.pth"));
  REQUIRE_MESSAGE(ours, ours.error().message);
  for (const auto& member : ours->members) {
    const auto& name = member.first;
    const auto& data = member.second;
    CAPTURE(name);
    REQUIRE(theirs->find(name) != nullptr);
    CHECK(text_of(data) == text_of(*theirs->find(name)));
    if (name.starts_with("data/")) CHECK(data.offset_in(ours->file).value() % 64 == 0);
  }
}

TEST_CASE("what is written is read as the same tensors, in other orders of dimensions too") {
  const ByteSource data = source_of(patterned(2 * 3 * 4 * 5 * 2));
  CheckpointTensor last = tensor_of("last", ScalarType::kBFloat16, {2, 3, 4, 5}, data);
  last.layout->dim_order = {0, 2, 3, 1};
  const auto tensors = tensors_of(written(checkpoint_of({
      tensor_of("a", ScalarType::kFloat16, {2, 3, 4, 5}, data),
      last,
      tensor_of("", ScalarType::kInt8, {}, source_of("x")),
      tensor_of("empty", ScalarType::kInt8, {0, 3}, source_of("")),
  })));
  REQUIRE(tensors.size() == 4);
  CHECK(text_of(tensors.at("a").data) == text_of(data));
  CHECK(text_of(tensors.at("").data) == "x");
  CHECK(tensors.at("empty").layout->sizes == std::vector<std::int32_t>{0, 3});
  // The element at [0, 1, 0, 0] is the second of those at hand.
  const std::string rows = text_of(tensors.at("last").data);
  CHECK(rows.substr(0, 2) == text_of(data).substr(0, 2));
  CHECK(rows.substr(4 * 5 * 2, 2) == text_of(data).substr(2, 2));
  CHECK(tensors.at("last").layout == TensorLayout{ScalarType::kBFloat16, {2, 3, 4, 5}, {0, 1, 2, 3}});
}

TEST_CASE("a checkpoint that torch has no tensors for is refused before anything is written") {
  const auto one = [](CheckpointTensor tensor) {
    return plan_torch_file(checkpoint_of({std::move(tensor)}));
  };
  CHECK(error_of(one({"q", "Q4_0", std::nullopt, source_of("x"), std::vector<std::uint64_t>{32}})) ==
        exactly(
            "kUnsupported: memory: tensor 'q' is of type Q4_0, which torch has no plain tensors of; leave it "
            "out"));
  CHECK(
      error_of(one({"q", "", std::nullopt, source_of("x")})) ==
      exactly("kUnsupported: memory: tensor 'q' has no layout, which torch has no plain tensors of; leave it "
              "out"));
  CHECK(error_of(one(tensor_of("\xff", ScalarType::kInt8, {1}, source_of("x")))) ==
        exactly("kUnsupported: memory: tensor '\\xff' has a name that is not UTF-8"));
  CHECK(error_of(one({"s", "U8", std::nullopt, source_of("x"), std::vector<std::uint64_t>{2}})) ==
        exactly("kUnsupported: memory: tensor 's' has 1 byte, expected those of uint8 [2]"));
  // torch keeps strides in 64 bits, with a sign.
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 62;
  const auto without_elements = [&](const std::vector<std::uint64_t>& shape) {
    return one({"e", "U8", std::nullopt, source_of(""), shape});
  };
  CHECK(without_elements({0, kHalf}));
  CHECK(without_elements({0, 2 * kHalf - 1}));
  CHECK(without_elements({2 * kHalf - 1, 0}));
  CHECK(error_of(without_elements({2 * kHalf, 0})) ==
        containing("has 0 bytes, expected those of uint8 [9223"));
  CHECK(error_of(without_elements({kHalf, 8})) == containing("has 0 bytes, expected those of uint8 [4611"));
  CHECK(one({"f", "F4", std::nullopt, source_of("x"), std::vector<std::uint64_t>()}));
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{0, 2 * kHalf}, std::vector<std::uint64_t>{0, 5, kHalf, 8}}) {
    CHECK(error_of(without_elements(shape)) ==
          containing("kUnsupported: memory: tensor 'e' has 0 bytes, expected those of uint8 [0, "));
  }
  const CheckpointTensor a = tensor_of("a", ScalarType::kInt8, {1}, source_of("x"));
  CHECK(error_of(plan_torch_file(checkpoint_of({a, a}))) ==
        exactly("kInvalidArgument: tensor 'a' comes twice"));
  std::vector<CheckpointTensor> many;
  for (int i = 0; i < 65534; ++i)
    many.push_back(tensor_of(std::to_string(i), ScalarType::kInt8, {0}, ByteSource()));
  CHECK(error_of(plan_torch_file(checkpoint_of(many))) ==
        exactly("kTooLarge: expected at most 65533 tensors for a torch file, found 65534"));
  many.pop_back();
  CHECK(plan_torch_file(checkpoint_of(many)));
}

}  // namespace

}  // namespace etstream::torch_file_test
