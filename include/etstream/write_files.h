// SPDX-License-Identifier: BSD-3-Clause
//
// Writes several files so that all of them appear, or none does.
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("a.pte").value(), "program");
//   const etstream::OutputFile files[] = {{.plan = &plan, .path = "b.pte"}};
//   const auto written = etstream::write_files(files);
//   if (!written) return written.error();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// A file to be written, and its destination.
struct OutputFile {
  const FilePlan* plan = nullptr;  // outlives the call; null where `write` is there
  /// The path; with `open`, what messages call the destination. If it is empty the file is only checked.
  std::string path;
  /// Opens a destination that is not replaced at its path: standard output, a descriptor, an object. What was
  /// written there can't be taken back.
  std::function<Result<std::unique_ptr<Sink>>()> open = {};
  std::optional<FileIdentity> changes = std::nullopt;  // the regular file that `open` changes in place
  /// Writes, up to its commit, what has no plan, such as a folder.
  std::function<Result<std::unique_ptr<PendingOutput>>(const Progress&)> write = {};
};

/// Options of write_files().
struct WriteFilesOptions {
  bool sync = true;  // as in FileSinkOptions
  Warn warn = {};
  std::optional<std::uint64_t> max_disk =
      std::nullopt;  // of what is not a stream, in bytes; see check_disk()
  /// A folder that is made for the files in it, and removed again if they don't appear.
  std::string folder = {};
  /// Says that the last file may take the place of the replaceable input of InputRecord::current().
  bool may_replace_input = false;
  /// Returns the function that is told of the progress: the bytes done and those of all files. It is asked
  /// for once for streams, and once for files, before the first of them is opened.
  std::function<Progress(bool is_stream)> progress = {};
};

/// Returns whether what is written to a path goes there as it comes: to a pipe or a device.
[[nodiscard]] ETSTREAM_EXPORT bool is_stream(const std::string& path);

/// Checks what can be checked before the first byte is written. Errors: kTooLarge as in check_disk();
/// kInvalidArgument if two destinations are one file, if one is an input, or has the ending of another kind
/// of file; those of check_file_sink().
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_files(std::span<const OutputFile> files,
                                                       const WriteFilesOptions& options = {});

/// Checks, then writes streams, then files, which appear in their order once all are written, as in
/// commit_together(). Errors: those of check_files(), write() and commit_together(). After an error all files
/// are as they were.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_files(std::span<const OutputFile> files,
                                                       const WriteFilesOptions& options = {});

}  // namespace etstream
