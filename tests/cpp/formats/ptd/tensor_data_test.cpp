// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/tensor_data.h"

#include <doctest/doctest.h>

#include "etstream/sink.h"
#include "test_errors.h"

namespace etstream::tensor_data_test {
namespace {

TensorData two_entries() {
  TensorData data;
  data.buffers = {{ByteSource::zeros(24)}, {ByteSource::zeros(5), 4096}};
  data.entries = {
      {"opaque", 1}, {"weight", 0, TensorLayout{ScalarType::kFloat32, {2, 3}, {1, 0}}}, {"tied", 1}};
  return data;
}

TEST_CASE("what is written is read again, sound, each buffer where it was asked to be") {
  const auto layout = plan(two_entries());
  REQUIRE(layout);
  const auto file = source_of(*layout);
  REQUIRE(file);
  CHECK(file->size() == layout->size);
  CHECK(layout->payload_size == layout->size - layout->metadata_size);
  const auto opened = TensorDataFile::open(*file);
  REQUIRE_MESSAGE(opened, opened.error().message);
  Findings findings;
  REQUIRE(opened->verify(findings));
  CHECK(findings.errors.empty());
  const auto entries = opened->entries().value();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].key == "opaque");
  CHECK(entries[0].segment == 0);  // in the order of the entries
  CHECK((entries[0].offset - (layout->metadata_size + 127) / 128 * 128) % 4096 == 0);
  CHECK_FALSE(entries[0].layout);
  CHECK(entries[1].layout == two_entries().entries[1].layout);
  CHECK(entries[1].data.size() == 24);
  CHECK(entries[2].segment == 0);
  CHECK(opened->segments().value().size() == 2);
}

TEST_CASE("layouts that do not fit are written where they are not checked") {
  TensorData data = two_entries();
  data.entries[1].layout->sizes = {2, 2};
  data.entries[1].layout->dim_order = {0};
  data.unchecked = true;
  CHECK(plan(data));
  data.entries[0].buffer = 2;
  CHECK_FALSE(plan(data));
}

TEST_CASE("what no reader would take is refused") {
  const auto refused = [](auto change) {
    TensorData data = two_entries();
    change(data);
    return error_of(plan(data));
  };
  CHECK(refused([](auto& d) { d.entries[2].key = ""; }) ==
        exactly("kInvalidArgument: NamedData.key: expected a name that is not empty, found ''"));
  CHECK(refused([](auto& d) { d.entries[2].key = "weight"; }) ==
        "kInvalidArgument: tensor data: key 'weight' comes twice");
  CHECK(refused([](auto& d) { d.entries[0].buffer = 2; }) ==
        "kInvalidArgument: tensor data: key 'opaque': expected a buffer below 2, found 2");
  CHECK(refused([](auto& d) {
          d.entries[1].layout->sizes = {2, 2};
        }) ==
        "kInvalidArgument: tensor data: key 'weight': expected the 16 bytes of float32 [2, 2], found 24");
  CHECK(refused([](auto& d) {
          d.entries[1].layout->dim_order = {0, 0};
        }) ==
        "kInvalidArgument: tensor data: key 'weight': expected each of its 2 dimensions once as dim_order, "
        "found "
        "[0, 0]");
  CHECK(refused([](auto& d) { d.segment_alignment = 3; }) ==
        "kInvalidArgument: segment alignment 3: expected a power of two from 1 to 1073741824");
  CHECK(refused([](auto& d) { d.buffers[1].alignment = 0; }) ==
        "kInvalidArgument: segment alignment 0: expected a power of two from 1 to 1073741824");
}

// tests/cli/cases/splits_tensor_data.sh and tests/peer/test_shards.py have shards, as ExecuTorch makes them.
TEST_CASE("what can't be split is refused") {
  TensorData data = two_entries();
  CHECK(error_of(split(data, 23)) ==
        containing("kInvalidArgument: 'weight' has 24 bytes, and a shard at most 23: "));
  CHECK(error_of(split(data, 0)) == containing("kInvalidArgument: "));
  data.entries[0].buffer = 2;
  CHECK(error_of(split(data, 100)) ==
        "kInvalidArgument: tensor data: key 'opaque': expected a buffer below 2, found 2");
}

}  // namespace
}  // namespace etstream::tensor_data_test
