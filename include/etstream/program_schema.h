// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramSchema: which tables a program (.pte) has. That of ExecuTorch 1.5.1 is built in; another one's,
// newer by fields and tables, can be read where it is installed, so that nothing of its programs is lost.
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
  /// That of ExecuTorch 1.5.1.
  ProgramSchema() = default;

  /// That of a .fbs file, with what it includes from next to it or from `include_folders`, or of a binary one
  /// (.bfbs). Errors: kCorrupt for what is no schema, naming file and line; kUnsupported where a table or
  /// field that the built-in schema has is missing or is another, naming it; kNotFound, kIo.
  [[nodiscard]] static Result<ProgramSchema> load(const std::string& path,
                                                  const std::vector<std::string>& include_folders = {});

  /// The library's own form of it. Error: kCorrupt, which the built-in one is not.
  [[nodiscard]] Result<std::shared_ptr<const Schema>> schema() const;

 private:
  std::shared_ptr<const Schema> schema_;  // null for the built-in one
};

}  // namespace etstream
