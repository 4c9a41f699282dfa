// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/output_places.h"

#include <filesystem>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/temporary_posix.h"
#include "etstream/input_record.h"

namespace etstream {
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
