// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a file of any format that etstream knows is sound.
//
//   const auto findings = etstream::verify(etstream::ByteSource::file("model.pte").value());
//   if (!findings) return findings.error();
//   if (!findings->ok()) std::puts(findings->errors.front().message.c_str());
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

struct FileFindings : Findings {
  /// What the program asks for and does not have, as external_keys() of program_weights.h has it; none
  /// where there is no program, or its requests can't be read.
  std::optional<std::vector<std::string>> external_keys;
};

/// Checks a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file, told apart by how they
/// begin. All metadata and padding is read; payloads are where a hash or a checksum protects them. At most
/// 100 errors and 100 warnings are found. Errors: kUnsupported for another kind of file; kIo; kCorrupt for
/// one that changes while it is read. What is wrong with the file otherwise is in the findings.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> verify(const ByteSource& file);

/// Checks a .pte or a .bpte and the .ptd files that it is to run with: each by itself, and, where all are
/// sound, that they fit, as program_weights.h has it. Each file is opened once. At most 100 errors and 100
/// warnings of each are found. Error also: kUnsupported for `weights` with another kind of file than these.
[[nodiscard]] ETSTREAM_EXPORT Result<FileFindings> verify(const ByteSource& file,
                                                          const std::vector<ByteSource>& weights);

}  // namespace etstream
