// SPDX-License-Identifier: BSD-3-Clause
#include "files/weight_paths.h"

#include <utility>

#include "core/base/try.h"
#include "etstream/file_kind.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/gguf/gguf.h"

namespace etstream {

Result<ReportedPath> reported_path(const std::string& path, const OpenFile& open_file) {
  ReportedPath out{path, {}, false};
  if (is_folder(path)) {
    ETSTREAM_ASSIGN(const auto files, files_of_folder(path, open_file));
    out.has_several = files.size() > 1;
    if (out.has_several) return out;
    out.path = files.front();
  }
  auto file = open_file(out.path);
  if (!file && file.error().code == ErrorCode::kUnsupported) {
    // An update has no bytes to read it by without its base, and is reported on as it lies.
    const auto raw = ByteSource::raw_file(out.path);
    const auto kind = raw ? file_kind(*raw) : raw.error();
    if (kind && *kind == FileKind::kUpdate) file = raw;
  }
  ETSTREAM_ASSIGN(out.file, std::move(file));
  ETSTREAM_ASSIGN(const bool is_json, begins_json_object(out.file));
  if (!is_json) return out;
  ETSTREAM_ASSIGN(const auto index, read_checkpoint_index(out.file));
  out.has_several = index.has_value();
  return out;
}

Result<std::optional<SetPlace>> place_in_set(const ReportedPath& path, const OpenFile& open_file) {
  const auto kind = file_kind(path.file);
  if (!kind || !has_sets(*kind)) return std::optional<SetPlace>();
  std::optional<GgufSplit> split;
  if (*kind == FileKind::kGguf) {
    ETSTREAM_ASSIGN(const GgufFile opened, open_gguf(path.file));
    split = opened.split;
  }
  return SetFinder(open_file).place_of(path.path, *kind, split);
}

}  // namespace etstream
