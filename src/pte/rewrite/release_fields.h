// SPDX-License-Identifier: BSD-3-Clause
//
// Refuses what the schema of an older release of ExecuTorch has no field for.
#pragma once

#include <cstddef>
#include <vector>

#include "etstream/writer_version.h"
#include "flatbuffer/value_reader.h"
#include "pte/program_fields.h"

namespace etstream {

/// Passes on the values of `values`, which outlives it. field() refuses a value other than the default in a
/// field that came after `release`, with kInvalidArgument.
class ReleaseFields final : public ValueReader {
 public:
  ReleaseFields(const pte::ProgramFields& fields, ValueReader& values, ExecutorchRelease release);

  ValueNode root() override { return values_.root(); }
  Result<FieldValue> field(ValueNode node, std::size_t table, std::size_t field) override;
  Result<FieldValue> element(ValueNode vector, std::uint64_t i) override {
    return values_.element(vector, i);
  }

 private:
  ValueReader& values_;
  const ExecutorchRelease release_;
  std::vector<BoundField> newer_;
};

}  // namespace etstream
