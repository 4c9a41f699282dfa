// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "test_errors.h"

namespace etstream::tensor_test {
namespace {

constexpr std::int32_t kLargestSize = std::numeric_limits<std::int32_t>::max();

struct Row {
  int number;
  std::uint64_t item_size;
  std::string_view name;
};

/// The types from exir/scalar_type.py of ExecuTorch 1.5.1, with torch's names.
constexpr Row kTypes[] = {
    {0, 1, "uint8"},
    {1, 1, "int8"},
    {2, 2, "int16"},
    {3, 4, "int32"},
    {4, 8, "int64"},
    {5, 2, "float16"},
    {6, 4, "float32"},
    {7, 8, "float64"},
    {8, 4, "complex32"},
    {9, 8, "complex64"},
    {10, 16, "complex128"},
    {11, 1, "bool"},
    {12, 1, "qint8"},
    {13, 1, "quint8"},
    {14, 4, "qint32"},
    {15, 2, "bfloat16"},
    {16, 1, "quint4x2"},
    {17, 1, "quint2x4"},
    {22, 2, "bits16"},
    {23, 1, "float8_e5m2"},
    {24, 1, "float8_e4m3fn"},
    {25, 1, "float8_e5m2fnuz"},
    {26, 1, "float8_e4m3fnuz"},
    {27, 2, "uint16"},
    {28, 4, "uint32"},
    {29, 8, "uint64"},
};

const Row* find_row(int number) {
  for (const Row& row : kTypes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

TEST_CASE("every number of a scalar type has its size and name, and no other number has") {
  for (int number = -128; number < 128; ++number) {
    CAPTURE(number);
    const auto type = static_cast<ScalarType>(number);
    const Row* row = find_row(number);
    CHECK(item_size(type) == (row ? row->item_size : 0));
    CHECK(name_of(type) == (row ? row->name : "unknown"));
  }
}

TEST_CASE("a scalar type is found by its names, in whatever case") {
  for (const Row& row : kTypes) {
    CAPTURE(row.name);
    CHECK(find_scalar_type(row.name) == static_cast<ScalarType>(row.number));
  }
  struct Named {
    std::string name;
    ScalarType type;
  };
  for (const Named& named :
       {Named{"torch.bfloat16", ScalarType::kBFloat16}, Named{"bf16", ScalarType::kBFloat16},
        Named{"half", ScalarType::kFloat16}, Named{"fp16", ScalarType::kFloat16},
        Named{"F16", ScalarType::kFloat16}, Named{"float", ScalarType::kFloat32},
        Named{"FLOAT32", ScalarType::kFloat32},

        Named{"long", ScalarType::kInt64}, Named{"I32", ScalarType::kInt32}, Named{"u8", ScalarType::kUInt8},
        Named{"F8_E4M3FNUZ", ScalarType::kFloat8E4M3FNUZ}, Named{"C64", ScalarType::kComplex64}}) {
    CAPTURE(named.name);
    CHECK(find_scalar_type(named.name) == named.type);
  }
  for (const std::string name : {"", "unknown", "float32 ", "torch.", "torch.torch.float32", "numpy.float32",
                                 "int4", "bf", "bf160", "f8", "float8_e4m3"}) {
    CAPTURE(name);
    CHECK_FALSE(find_scalar_type(name).has_value());
  }
}

TEST_CASE("a tensor's bytes are its elements times their size") {
  using Sizes = std::vector<std::int32_t>;
  CHECK(byte_size(ScalarType::kFloat32, Sizes{}).value() == 4);
  CHECK(byte_size(ScalarType::kFloat32, Sizes{2, 3, 5}).value() == 120);
  CHECK(byte_size(ScalarType::kInt8, Sizes{2, 0, 5}).value() == 0);
  CHECK(byte_size(ScalarType::kInt64, Sizes{0, kLargestSize, kLargestSize, 8}).value() == 0);
  CHECK(byte_size(ScalarType::kUInt8, Sizes{kLargestSize, kLargestSize}).value() == 4611686014132420609U);
}

TEST_CASE("a tensor's bytes are not given for what is no tensor") {
  using Sizes = std::vector<std::int32_t>;
  CHECK(error_of(byte_size(ScalarType::kFloat32, Sizes{2, -1})) ==
        "kInvalidArgument: a dimension has the negative size -1");
  CHECK(error_of(byte_size(static_cast<ScalarType>(18), Sizes{2})) ==
        "kInvalidArgument: scalar type 18 is unknown");
  CHECK(code_of(byte_size(ScalarType::kUInt8, Sizes{kLargestSize, kLargestSize, 8})) == "kTooLarge");
}

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<std::uint8_t> out(tensor.data.size());
  REQUIRE(tensor.data.read_at(0, std::as_writable_bytes(std::span(out))));
  return out;
}

Tensor tensor(std::vector<std::int32_t> sizes, std::vector<std::uint8_t> order,
              std::vector<std::uint8_t> data) {
  const auto bytes = std::as_bytes(std::span(data));
  return {ScalarType::kUInt8, std::move(sizes), std::move(order),
          ByteSource::owned({bytes.begin(), bytes.end()})};
}

TEST_CASE("every order of three dimensions keeps each element whole, at its place") {
  const std::vector<std::int32_t> sizes = {2, 3, 4};
  std::vector<std::uint8_t> data;
  for (std::uint8_t i = 0; i < 24; ++i) data.insert(data.end(), {i, 100});
  const Tensor contiguous{ScalarType::kInt16, sizes, {0, 1, 2}, tensor({48}, {0}, data).data};
  std::vector<std::uint8_t> order = {0, 1, 2};
  do {
    const Tensor other = with_dim_order(contiguous, order).value();
    CHECK(other.sizes == sizes);
    CHECK(other.dim_order == order);
    CHECK(bytes_of(with_dim_order(other, {0, 1, 2}).value()) == data);
    const auto moved = bytes_of(other);
    std::size_t at = 0;
    std::int32_t place[3];
    for (place[order[0]] = 0; place[order[0]] < sizes[order[0]]; ++place[order[0]]) {
      for (place[order[1]] = 0; place[order[1]] < sizes[order[1]]; ++place[order[1]]) {
        for (place[order[2]] = 0; place[order[2]] < sizes[order[2]]; ++place[order[2]]) {
          CHECK(moved[at++] == place[0] * 12 + place[1] * 4 + place[2]);
          CHECK(moved[at++] == 100);
        }
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("data that lies alike is shared") {
  const Tensor one_channel{ScalarType::kUInt8, {1, 1, 2, 3}, {0, 1, 2, 3}, ByteSource::zeros(6)};
  CHECK(with_dim_order(one_channel, {0, 2, 3, 1})->data.offset_in(one_channel.data) == 0);
  const Tensor gathered = with_dim_order(tensor({1, 2, 2}, {0, 1, 2}, {1, 2, 3, 4}), {0, 2, 1}).value();
  CHECK(with_dim_order(gathered, {2, 0, 1})->data.offset_in(gathered.data) == 0);
  CHECK(lie_alike({0, 5, 7}, {0, 1, 2}, {2, 1, 0}));
  CHECK(!lie_alike({1, 2, 2}, {0, 1, 2}, {0, 2, 1}));
}

TEST_CASE("a tensor without dimensions or elements has any order that it can have") {
  CHECK(bytes_of(with_dim_order(tensor({}, {}, {7}), {}).value()) == std::vector<std::uint8_t>{7});
  CHECK(with_dim_order(tensor({0, 3}, {0, 1}, {}), {1, 0})->dim_order == std::vector<std::uint8_t>{1, 0});
}

TEST_CASE("an order that is none, and data of another length, are refused") {
  const Tensor fine = tensor({2, 2}, {0, 1}, {1, 2, 3, 4});
  CHECK(error_of(with_dim_order(fine, {0})) == containing("dim_order [0] is not a permutation"));
  CHECK(error_of(with_dim_order(fine, {0, 0})) == containing("dim_order [0, 0] is not a permutation"));
  CHECK(error_of(with_dim_order(fine, {0, 2})) == containing("dim_order [0, 2] is not a permutation"));
  CHECK(error_of(with_dim_order(tensor({2, 2}, {0, 1}, {1, 2, 3}), {1, 0})) ==
        exactly("kInvalidArgument: a tensor has 3 bytes of data, expected 4"));
}

}  // namespace

}  // namespace etstream::tensor_test
