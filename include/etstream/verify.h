// SPDX-License-Identifier: BSD-3-Clause
//
// Checks whether a file of any format that etstream knows is sound.
//
//   const auto findings = etstream::verify(etstream::ByteSource::file("model.pte").value());
//   if (!findings) return findings.error();
//   if (!findings->ok()) std::puts(full_message(findings->errors.front()).c_str());
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/method_runs.h"
#include "etstream/result.h"

namespace etstream {

/// Findings, and the files that they are about.
struct FileFindings : Findings {
  /// The keys that the program asks for and does not contain, as external_keys() of program_weights.h returns
  /// them; none if there is no program, or its requests can't be read.
  std::optional<std::vector<std::string>> external_keys;
  std::vector<std::string> files;    // of the set that was checked, if the path stands for several
  std::vector<std::string> weights;  // the paths of the .ptd files that were checked with the program
  std::vector<MethodRun> runs;       // those of add_runs()
};

/// Checks a .pte, a .ptd, a .bpte, a safetensors, a GGUF, a .fat or a .ptn file, or an update as it lies
/// (packed_file.h), as file_kind() detects it.
/// Reads all metadata and padding, and payloads that a hash or a checksum protects. Finds at most 100 errors
/// and 100 warnings. Errors: kUnsupported for another kind of file; kIo; kCorrupt for a file that changes
/// while it is read. Other problems in the file are in the findings.
[[nodiscard]] ETSTREAM_EXPORT Result<Findings> verify(const ByteSource& file);

/// Checks a .pte or a .bpte and the .ptd files that it is to run with: each by itself and, if all are sound,
/// that they fit, as in program_weights.h. Opens each file once. Finds at most 100 errors and
/// 100 warnings in each. Further error: kUnsupported for other kinds of files than these, if there are
/// `weights`.
[[nodiscard]] ETSTREAM_EXPORT Result<FileFindings> verify(const ByteSource& file,
                                                          const std::vector<ByteSource>& weights);

/// Checks what a path stands for: a file, as verify(ByteSource) does, or weights in several files, as
/// open_checkpoint() finds them. Checks each of these files, that none is missing, and that they belong
/// together; and for an index, that tensors are in the files that it names, with as many bytes as it says.
/// Paths in `weights` stand for whole sets too. Problems of a set are in the findings. With options.partial,
/// each file is checked by itself. Warns of temporary files that killed processes left beside one of the
/// files, see commit_together() in sink.h. Errors: those of verify(ByteSource, ...); those of opening a
/// folder or an index.
[[nodiscard]] ETSTREAM_EXPORT Result<FileFindings> verify(const std::string& path,
                                                          const std::vector<std::string>& weights = {},
                                                          const CheckpointOptions& options = {});

/// Runs the methods of a program or a bundle in which no error was found, as run_methods() does, and adds the
/// runs to `findings`: those that are not ok as errors too, or, of kInputsRefused, as warnings.
/// There may then be more than 100. If there is an error already, runs nothing. Errors: those of
/// run_methods().
[[nodiscard]] ETSTREAM_EXPORT Result<void> add_runs(const ByteSource& file,
                                                    const std::vector<ByteSource>& weights,
                                                    const MethodRunOptions& options, FileFindings& findings);

/// Does the same for a path, with the weights of `findings`, which verify() has returned for it.
[[nodiscard]] ETSTREAM_EXPORT Result<void> add_runs(const std::string& path, const MethodRunOptions& options,
                                                    FileFindings& findings,
                                                    const OpenFile& open_file = &ByteSource::file);

}  // namespace etstream
