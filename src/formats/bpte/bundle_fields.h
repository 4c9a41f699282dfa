// SPDX-License-Identifier: BSD-3-Clause
//
// The tables and fields that reading bundles needs: those of both formats, and those that segmented bundles
// add. Writing has the schemas' names in its bindings (bundled_program_schema.cpp, segmented_bundle.cpp).
#pragma once

#include <functional>

#include "formats/segments/shared_fields.h"

namespace etstream::bpte {

struct TensorFields : ShapeFields {
  explicit TensorFields(const Schema& schema) : ShapeFields(schema, "Tensor") {}
  BoundField data = field("data");
};

/// The fields that both formats have, bound to `schema`, which outlives them.
struct BundleFields {
  struct Root : BoundTable {
    explicit Root(const Schema& schema) : BoundTable(schema, "BundledProgram") {}
    BoundField version = field("version");
    BoundField method_test_suites = field("method_test_suites");
    BoundField program = field("program");
  };
  struct Suite : BoundTable {
    explicit Suite(const Schema& schema) : BoundTable(schema, "BundledMethodTestSuite") {}
    BoundField method_name = field("method_name");
    BoundField test_cases = field("test_cases");
  };
  struct TestCase : BoundTable {
    explicit TestCase(const Schema& schema) : BoundTable(schema, "BundledMethodTestCase") {}
    BoundField inputs = field("inputs");
    BoundField expected_outputs = field("expected_outputs");
  };

  std::reference_wrapper<const Schema> schema;
  Root root{schema};
  Suite suite{schema};
  TestCase test_case{schema};
  OneField value{schema, "Value", "val"};
  TensorFields tensor{schema};
  OneField integer{schema, "Int", "int_val"};
  OneField boolean{schema, "Bool", "bool_val"};
  OneField number{schema, "Double", "double_val"};
};

/// The fields of segmented bundles alone, bound to `schema`, which outlives them.
struct SegmentedBundleFields {
  struct Root : BoundTable {
    explicit Root(const Schema& schema) : BoundTable(schema, "BundledProgram") {}
    BoundField segments = field("segments");
    BoundField program_segment = field("program_segment");
    BoundField program_alignment = field("program_alignment");
    BoundField original_file = field("original_file");
  };
  struct SegmentedTensor : TensorFields {
    using TensorFields::TensorFields;
    BoundField data_segment = field("data_segment");
  };
  struct Segment : BoundTable {
    explicit Segment(const Schema& schema) : BoundTable(schema, "Segment") {}
    BoundField size = field("size");
    BoundField alignment = field("alignment");
  };
  struct OriginalFile : BoundTable {
    explicit OriginalFile(const Schema& schema) : BoundTable(schema, "OriginalFile") {}
    BoundField metadata_segment = field("metadata_segment");
    BoundField payloads = field("payloads");
  };

  std::reference_wrapper<const Schema> schema;
  Root root{schema};
  SegmentedTensor tensor{schema};
  Segment segment{schema};
  OriginalFile original_file{schema};
};

}  // namespace etstream::bpte
