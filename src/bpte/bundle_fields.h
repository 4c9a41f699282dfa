// SPDX-License-Identifier: BSD-3-Clause
//
// The tables and fields of bundles that are read: of both formats, and those that segmented ones have
// besides. What writes them has the schemas' names in its bindings (bundled_program_bindings.cpp,
// segmented_bundle.cpp).
#pragma once

#include <functional>

#include "container/shared_fields.h"

namespace etstream::bpte {

struct RootFields : BoundTable {
  explicit RootFields(const Schema& schema) : BoundTable(schema, "BundledProgram") {}
  BoundField version = field("version");
  BoundField method_test_suites = field("method_test_suites");
  BoundField program = field("program");
};

struct SuiteFields : BoundTable {
  explicit SuiteFields(const Schema& schema) : BoundTable(schema, "BundledMethodTestSuite") {}
  BoundField method_name = field("method_name");
  BoundField test_cases = field("test_cases");
};

struct CaseFields : BoundTable {
  explicit CaseFields(const Schema& schema) : BoundTable(schema, "BundledMethodTestCase") {}
  BoundField inputs = field("inputs");
  BoundField expected_outputs = field("expected_outputs");
};

struct TensorFields : ShapeFields {
  explicit TensorFields(const Schema& schema) : ShapeFields(schema, "Tensor") {}
  BoundField data = field("data");
};

/// Of both formats. Bound to `schema`, which outlives it.
struct BundleFields {
  explicit BundleFields(const Schema& schema)
      : root(schema),
        suite(schema),
        test_case(schema),
        value(schema, "Value", "val"),
        tensor(schema),
        integer(schema, "Int", "int_val"),
        boolean(schema, "Bool", "bool_val"),
        number(schema, "Double", "double_val") {}
  RootFields root;
  SuiteFields suite;
  CaseFields test_case;
  OneField value;
  TensorFields tensor;
  OneField integer;
  OneField boolean;
  OneField number;
};

struct SegmentedRootFields : BoundTable {
  explicit SegmentedRootFields(const Schema& schema) : BoundTable(schema, "BundledProgram") {}
  BoundField segments = field("segments");
  BoundField program_segment = field("program_segment");
  BoundField program_alignment = field("program_alignment");
  BoundField original_file = field("original_file");
};

struct SegmentedTensorFields : TensorFields {
  using TensorFields::TensorFields;
  BoundField data_segment = field("data_segment");
};

struct SegmentFields : BoundTable {
  explicit SegmentFields(const Schema& schema) : BoundTable(schema, "Segment") {}
  BoundField size = field("size");
  BoundField alignment = field("alignment");
};

struct OriginalFileFields : BoundTable {
  explicit OriginalFileFields(const Schema& schema) : BoundTable(schema, "OriginalFile") {}
  BoundField metadata_segment = field("metadata_segment");
  BoundField payloads = field("payloads");
};

/// Of segmented bundles alone. Bound to `schema`, which outlives it.
struct SegmentedBundleFields {
  explicit SegmentedBundleFields(const Schema& given)
      : schema(given), root(given), tensor(given), segment(given), original_file(given) {}
  std::reference_wrapper<const Schema> schema;
  SegmentedRootFields root;
  SegmentedTensorFields tensor;
  SegmentFields segment;
  OriginalFileFields original_file;
};

}  // namespace etstream::bpte
