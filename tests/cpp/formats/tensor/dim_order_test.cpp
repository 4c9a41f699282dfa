// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/dim_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "test_errors.h"

namespace etstream::dim_order_test {
namespace {

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

TEST_CASE("elements move to where the order has them, and back") {
  // Two channels of 2 x 3, written out by hand.
  const Tensor nchw = tensor({1, 2, 2, 3}, {0, 1, 2, 3}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
  const auto nhwc = with_dim_order(nchw, {0, 2, 3, 1});
  REQUIRE(nhwc);
  CHECK(nhwc->sizes == nchw.sizes);
  CHECK(nhwc->dim_order == std::vector<std::uint8_t>{0, 2, 3, 1});
  CHECK(bytes_of(*nhwc) == std::vector<std::uint8_t>{1, 11, 2, 12, 3, 13, 4, 14, 5, 15, 6, 16});
  CHECK(bytes_of(with_dim_order(*nhwc, {0, 1, 2, 3}).value()) == bytes_of(nchw));
}

TEST_CASE("every order of three dimensions keeps each element at its place") {
  const std::vector<std::int32_t> sizes = {2, 3, 4};
  std::vector<std::uint8_t> data(24);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i);
  const Tensor contiguous = tensor(sizes, {0, 1, 2}, data);
  std::vector<std::uint8_t> order = {0, 1, 2};
  do {
    const auto moved = bytes_of(with_dim_order(contiguous, order).value());
    std::size_t at = 0;
    std::int32_t place[3];
    for (place[order[0]] = 0; place[order[0]] < sizes[order[0]]; ++place[order[0]]) {
      for (place[order[1]] = 0; place[order[1]] < sizes[order[1]]; ++place[order[1]]) {
        for (place[order[2]] = 0; place[order[2]] < sizes[order[2]]; ++place[order[2]]) {
          CHECK(moved[at++] == place[0] * 12 + place[1] * 4 + place[2]);
        }
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("elements of several bytes move whole") {
  const Tensor wide{ScalarType::kInt16, {2, 2}, {0, 1}, tensor({8}, {0}, {1, 2, 3, 4, 5, 6, 7, 8}).data};
  CHECK(bytes_of(with_dim_order(wide, {1, 0}).value()) == std::vector<std::uint8_t>{1, 2, 5, 6, 3, 4, 7, 8});
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
}  // namespace etstream::dim_order_test
