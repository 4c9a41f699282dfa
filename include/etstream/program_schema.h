// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramSchema: the tables and fields that a program (.pte) may have. The schema of ExecuTorch 1.5.1 is
// built in. The schema of another release, with more fields and tables, can be loaded from its installation,
// so that nothing in its programs is lost.
//
//   auto schema = etstream::ProgramSchema::load("executorch/schema/program.fbs");
//   if (!schema) return schema.error();
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   auto program = etstream::ProgramFile::open(file, {}, *schema);
//   if (!program) return program.error();
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

class Schema;

/// A value, cheap to copy. Const use from several threads is safe.
class ETSTREAM_EXPORT ProgramSchema {
 public:
  /// Makes the schema of ExecuTorch 1.5.1.
  ProgramSchema() = default;

  /// Loads a .fbs file, with its includes from the same folder or from `include_folders`, or a binary schema
  /// (.bfbs). Errors: kCorrupt for an invalid schema, naming file and line; kUnsupported if a table or field
  /// of the built-in schema is missing or different, naming it; kNotFound, kIo.
  [[nodiscard]] static Result<ProgramSchema> load(const std::string& path,
                                                  const std::vector<std::string>& include_folders = {});

  /// Returns the library's internal representation. Error: kCorrupt, never for the built-in schema.
  [[nodiscard]] Result<std::shared_ptr<const Schema>> schema() const;

 private:
  std::shared_ptr<const Schema> schema_;  // null for the built-in one
};

}  // namespace etstream
