// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/input_record.h"

#include <sys/stat.h>

#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_calls_posix.h"

namespace etstream {
namespace {

thread_local InputRecord* newest = nullptr;

}  // namespace

struct InputRecord::Files {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names;  // by device and inode
  std::map<const ByteStorage*, ByteSource> sources;
};

InputRecord::InputRecord(std::optional<FileIdentity> replaceable)
    : files_(std::make_unique<Files>()), replaceable_(replaceable), outer_(std::exchange(newest, this)) {}

InputRecord::~InputRecord() { newest = outer_; }

InputRecord* InputRecord::current() noexcept { return newest; }

void InputRecord::add(const std::string& path) {
  if (const auto file = identity_of(path)) add(*file, path);
}

void InputRecord::add(const FileIdentity& file, const std::string& name) {
  files_->names.try_emplace({file.device, file.inode}, name);
}

void InputRecord::add(const ByteSource& source) {
  files_->sources.try_emplace(source.place().storage, source);
}

Result<void> InputRecord::check_unchanged() {
  if (newest == nullptr) return {};
  for (const auto& [storage, source] : newest->files_->sources) ETSTREAM_TRY(source.check_unchanged());
  return {};
}

Result<void> InputRecord::check_output(const std::string& path) const {
  const auto file = identity_of(path);
  if (!file || file == replaceable_) return {};
  return check_output_in_place(*file, path);
}

Result<void> InputRecord::check_output_in_place(const FileIdentity& file, const std::string& name) const {
  return without_exceptions([&]() -> Result<void> {
    const auto input = files_->names.find({file.device, file.inode});
    if (input == files_->names.end()) return {};
    return with_advice(make_error(ErrorCode::kInvalidArgument, "the output {} is the input {}", quote(name),
                                  quote(input->second)),
                       {"give the output another name"});
  });
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat found {};
  if (path.find('\0') != std::string::npos || ::stat(path.c_str(), &found) != 0) return std::nullopt;
  return file_identity(found);
}

std::optional<FileIdentity> identity_of_file(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return file_identity(found);
}

}  // namespace etstream
