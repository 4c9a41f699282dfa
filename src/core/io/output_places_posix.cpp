// SPDX-License-Identifier: BSD-3-Clause
//
// The files that a command reads, and the places that it writes to: neither may be the other, nor one place
// two.
#include "etstream/sink.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_calls_posix.h"
#include "core/io/temporary_posix.h"
#include "etstream/byte_source.h"

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

namespace {

Error one_file(const std::string& name, const std::string& earlier) {
  const std::string same =
      name == earlier ? quote(name) : text("one file, {} and {}", quote(earlier), quote(name));
  return with_advice(make_error(ErrorCode::kInvalidArgument, "two outputs are to be {}", same),
                     {"give each a name of its own"});
}

Error alike(const std::string& name, const std::string& earlier) {
  return with_advice(
      make_error(ErrorCode::kInvalidArgument,
                 "two outputs are to be {} and {}, which are one file where capital letters do not count",
                 quote(earlier), quote(name)),
      {"give each a name of its own"});
}

/// Returns the nearest folder above `path` that exists, and the rest of the path from there on.
std::pair<FileIdentity, std::string> place_of(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::path rest = std::filesystem::path(path).filename();
  for (;;) {
    if (const auto found = identity_of(folder.empty() ? "." : folder.string())) {
      return {*found, rest.lexically_normal().string()};
    }
    // "/" and "." exist; if they could not be looked into, the path itself would stand for the place.
    if (folder.empty() || folder == folder.parent_path()) return {{}, path};
    rest = folder.filename() / rest;
    folder = folder.parent_path();
  }
}

}  // namespace

Result<void> OutputPlaces::add(const std::string& path) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(const std::string end, follow_links(path));
    const auto [folder, name] = place_of(end);
    const auto [at, is_new] =
        names_.try_emplace({{folder.device, folder.inode}, in_small_letters(name)}, name, path);
    if (!is_new) {
      const auto& [earlier_name, earlier] = at->second;
      return name == earlier_name ? one_file(path, earlier) : alike(path, earlier);
    }
    if (const auto file = identity_of(end)) {
      const FileKey key{file->device, file->inode};
      if (const auto open = in_place_.find(key); open != in_place_.end()) return one_file(path, open->second);
      replaced_.try_emplace(key, path);
    }
    return {};
  });
}

Result<void> OutputPlaces::add(const FileIdentity& file, const std::string& name) {
  return without_exceptions([&]() -> Result<void> {
    const FileKey key{file.device, file.inode};
    if (const auto path = replaced_.find(key); path != replaced_.end()) return one_file(name, path->second);
    const auto [at, is_new] = in_place_.try_emplace(key, name);
    return is_new ? Result<void>() : one_file(name, at->second);
  });
}

}  // namespace etstream
