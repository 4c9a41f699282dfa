// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/diff.h"

#include <algorithm>

#include "container/file_kind.h"
#include "report/diff_list.h"

namespace etstream {
namespace {

template <class File, class Compare>
Result<bool> open_and_compare(const ByteSource& a, const ByteSource& b, Compare compare, DiffList list) {
  ETSTREAM_ASSIGN(const File one, File::open(a));
  ETSTREAM_ASSIGN(const File other, File::open(b));
  return compare(one, other, std::move(list));
}

bool is_bundle(FileKind kind) {
  return kind == FileKind::kBundledProgram || kind == FileKind::kSegmentedBundle;
}

}  // namespace

bool DiffList::has_content() const {
  return std::any_of(out_.begin() + static_cast<std::ptrdiff_t>(begin_), out_.end(),
                     [](const DiffEntry& one) { return one.kind == DiffEntry::Kind::kContent; });
}

Result<void> diff_segments(const ByteSource& a, const std::vector<SegmentInfo>& in_a, const ByteSource& b,
                           const std::vector<SegmentInfo>& in_b, DiffEntry::Kind kind, DiffList& list) {
  const auto told = [](const std::vector<SegmentInfo>& segments, std::size_t i) {
    if (i >= segments.size()) return std::string();
    const std::string& use = segments[i].use;
    return text(counted(segments[i].size, "byte"), use.empty() ? "" : " of ", printable(use));
  };
  for (std::size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
    const std::string subject = text("segment ", i);
    list.compare(subject, told(in_a, i), told(in_b, i), kind);
    if (i >= in_a.size() || i >= in_b.size()) continue;
    list.compare_layout(subject, text("at ", in_a[i].offset), text("at ", in_b[i].offset));
    if (in_a[i].size != in_b[i].size) continue;
    ETSTREAM_ASSIGN(const ByteSource one, a.slice(in_a[i].offset, in_a[i].size));
    ETSTREAM_ASSIGN(const ByteSource other, b.slice(in_b[i].offset, in_b[i].size));
    ETSTREAM_TRY(list.compare_bytes(subject, "", one, other, kind));
  }
  return {};
}

Result<FileDiff> diff(const ByteSource& a, const ByteSource& b) {
  return without_exceptions([&]() -> Result<FileDiff> {
    ETSTREAM_ASSIGN(const FileKind kind_a, file_kind(a));
    ETSTREAM_ASSIGN(const FileKind kind_b, file_kind(b));
    if (kind_a != kind_b && !(is_bundle(kind_a) && is_bundle(kind_b))) {
      return make_error(ErrorCode::kInvalidArgument, "expected two files of one kind, found ", a.name(),
                        " and ", b.name(), " to be of two; take the program out of a bundle first");
    }
    if (kind_a == FileKind::kSafetensors) {
      return make_error(
          ErrorCode::kUnsupported, a.name(),
          ": is a safetensors file; expected a program, a bundle or named data, which ptd makes of it");
    }
    FileDiff out;
    const DiffList list(out.differences);
    const auto compared = [&]() -> Result<bool> {
      if (kind_a == FileKind::kProgram) return open_and_compare<ProgramFile>(a, b, diff_programs, list);
      if (kind_a == FileKind::kTensorData)
        return open_and_compare<TensorDataFile>(a, b, diff_tensor_data, list);
      return open_and_compare<BundledProgramFile>(a, b, diff_bundles, list);
    };
    ETSTREAM_ASSIGN(out.same_bytes, same_bytes(a, b));
    if (out.same_bytes) {
      out.same_content = true;
    } else {
      ETSTREAM_ASSIGN(out.same_content, compared());
      // Where tables lie in a flatbuffer, padding, or what nothing refers to.
      const auto kind = out.same_content ? DiffEntry::Kind::kLayout : DiffEntry::Kind::kContent;
      if (out.differences.empty())
        ETSTREAM_TRY(DiffList(out.differences).compare_bytes("file", "", a, b, kind));
    }
    ETSTREAM_TRY(a.check_unchanged());
    ETSTREAM_TRY(b.check_unchanged());
    return out;
  });
}

}  // namespace etstream
