// SPDX-License-Identifier: BSD-3-Clause
#include "flatbuffer/schema.h"

#include <doctest/doctest.h>

#include <span>
#include <string>

#include "bundled_program_bfbs_generated.h"
#include "etstream/byte_source.h"
#include "flat_tensor_bfbs_generated.h"
#include "native_graph_bfbs_generated.h"
#include "program_bfbs_generated.h"
#include "segmented_bundle_bfbs_generated.h"
#include "test_paths.h"
#include "test_sources.h"
#include "vulkan_graph_bfbs_generated.h"
#include "xnnpack_graph_bfbs_generated.h"

namespace etstream::embedded_schema_test {
namespace {

template <class Binary>
void check_against_flatc(const std::string& name) {
  CAPTURE(name);
  const auto flatcs = ByteSource::file(kFlatcSchemaDir + "/" + name + ".bfbs");
  REQUIRE(flatcs);
  const ByteSource embedded = ByteSource::memory(std::as_bytes(std::span(Binary::data(), Binary::size())));
  CHECK(text_of(embedded) == text_of(*flatcs));
}

TEST_CASE("embedded schemas are what flatc makes") {
  check_against_flatc<bundled_program::BundledProgramBinarySchema>("bundled_program");
  check_against_flatc<flat_tensor::FlatTensorBinarySchema>("flat_tensor");
  check_against_flatc<native_graph::ProgramBinarySchema>("native_graph");
  check_against_flatc<program::ProgramBinarySchema>("program");
  check_against_flatc<segmented_bundle::BundledProgramBinarySchema>("segmented_bundle");
  check_against_flatc<vulkan_graph::VkGraphBinarySchema>("vulkan_graph");
  check_against_flatc<xnnpack_graph::XNNGraphBinarySchema>("xnnpack_graph");
}

}  // namespace
}  // namespace etstream::embedded_schema_test
