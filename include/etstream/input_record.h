// SPDX-License-Identifier: BSD-3-Clause
//
// InputRecord: which files have been opened as inputs, so that no output replaces one of them.
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

/// For as long as it lives, notes each regular file that its thread opens with ByteSource::file() or as a
/// schema, with those that a schema includes. Where there are several, the newest does, and they are
/// destroyed in the reverse order.
class ETSTREAM_EXPORT InputRecord {
 public:
  /// `replaceable` is an input that a new file may take the place of, once all of that is written.
  explicit InputRecord(std::optional<FileIdentity> replaceable = {});
  InputRecord(const InputRecord&) = delete;
  InputRecord& operator=(const InputRecord&) = delete;
  ~InputRecord();

  /// The one that notes what this thread opens; null for none.
  [[nodiscard]] static InputRecord* current() noexcept;

  /// Notes a file that is opened later, if it is there. `name` is what messages call it.
  void add(const std::string& path);
  void add(const FileIdentity& file, const std::string& name);

  /// Error: kInvalidArgument where the output at `path`, links followed, is one of the files, and not the one
  /// that may be replaced.
  [[nodiscard]] Result<void> check_output(const std::string& path) const;
  /// The same for a file that is written in place, which none of them may be.
  [[nodiscard]] Result<void> check_output_in_place(const FileIdentity& file, const std::string& name) const;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  std::optional<FileIdentity> replaceable_;
  InputRecord* outer_;
};

/// The file at `path`, links followed; none where there is none.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileIdentity> identity_of(const std::string& path);
/// That of an open descriptor, if it is a regular file.
[[nodiscard]] ETSTREAM_EXPORT std::optional<FileIdentity> identity_of_file(int descriptor);

}  // namespace etstream
