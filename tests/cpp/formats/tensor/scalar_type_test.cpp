// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/scalar_type.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "test_errors.h"

namespace etstream::scalar_type_test {
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
        Named{"BF16", ScalarType::kBFloat16}, Named{"half", ScalarType::kFloat16},
        Named{"torch.half", ScalarType::kFloat16}, Named{"fp16", ScalarType::kFloat16},
        Named{"F16", ScalarType::kFloat16}, Named{"float", ScalarType::kFloat32},
        Named{"FLOAT32", ScalarType::kFloat32}, Named{"fp32", ScalarType::kFloat32},
        Named{"f32", ScalarType::kFloat32}, Named{"double", ScalarType::kFloat64},
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

TEST_CASE("floating-point types are told from others") {
  for (const ScalarType type : {ScalarType::kFloat16, ScalarType::kBFloat16, ScalarType::kFloat32,
                                ScalarType::kFloat64, ScalarType::kFloat8E5M2, ScalarType::kFloat8E4M3FN}) {
    CHECK(is_floating_point(type));
  }
  for (const ScalarType type : {ScalarType::kUInt8, ScalarType::kInt64, ScalarType::kBool, ScalarType::kQInt8,
                                ScalarType::kBits16, ScalarType::kComplex64, ScalarType{100}}) {
    CHECK_FALSE(is_floating_point(type));
  }
}

}  // namespace
}  // namespace etstream::scalar_type_test
