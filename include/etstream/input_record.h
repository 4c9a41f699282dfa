// SPDX-License-Identifier: BSD-3-Clause
//
// InputRecord: records which files were opened as inputs, so that no output replaces one of them, and none is
// committed after one of them has changed.
//
//   const etstream::InputRecord inputs;
//   const auto model = etstream::ByteSource::file("model.pte");
//   const auto apart = inputs.check_output("link_to_model.pte");  // an error
//   if (!apart) return apart.error();
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// While it exists, records each regular file that its thread opens with ByteSource::file() or as a schema,
/// and the files that a schema includes. If there are several, only the newest records; they are destroyed in
/// reverse order. Before an output is committed in its thread (sink.h), all inputs are as they were when they
/// were opened, or that is the commit's error.
class ETSTREAM_EXPORT InputRecord {
 public:
  /// `replaceable` is an input that an output may replace once the output is complete.
  explicit InputRecord(std::optional<FileIdentity> replaceable = {});
  InputRecord(const InputRecord&) = delete;
  InputRecord& operator=(const InputRecord&) = delete;
  ~InputRecord();

  /// Returns the newest record of this thread; null if there is none.
  [[nodiscard]] static InputRecord* current() noexcept;

  /// Records a file that will be opened later, or by others, if it exists. `name` stands for it in messages.
  void add(const std::string& path);
  void add(const FileIdentity& file, const std::string& name);
  /// Records a source that may have been opened before.
  void add(const ByteSource& source);

  /// Checks that the sources in the newest record of this thread, if there is one, have not changed since
  /// they were opened. Error: kCorrupt.
  [[nodiscard]] static Result<void> check_unchanged();

  /// Checks that the output at `path`, with links followed, is none of the recorded files, except the
  /// replaceable one. Error: kInvalidArgument.
  [[nodiscard]] Result<void> check_output(const std::string& path) const;
  /// Checks the same for a file that is written in place, which may not be any of the recorded files.
  [[nodiscard]] Result<void> check_output_in_place(const FileIdentity& file, const std::string& name) const;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  std::optional<FileIdentity> replaceable_;
  InputRecord* outer_;
};

/// Identifies the file at `path`, with links followed; none if there is none.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileIdentity> identity_of(const std::string& path);
/// Identifies the file that is open at `descriptor`, if it is a regular file.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileIdentity> identity_of_file(int descriptor);

}  // namespace etstream
