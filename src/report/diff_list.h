// SPDX-License-Identifier: BSD-3-Clause
//
// DiffList: the differences that are found, and the files' formats that find them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "etstream/diff.h"
#include "layout/same_bytes.h"
#include "report/any_file.h"
#include "tensor/dimensions.h"

namespace etstream {

class DiffList {
 public:
  explicit DiffList(std::vector<DiffEntry>& out) : DiffList(out, {}, std::make_shared<Comparisons>()) {}

  /// Whether the content differs in any of what was added since this list was made.
  [[nodiscard]] bool has_content() const;

  [[nodiscard]] DiffList within(std::string_view subject) const {
    return DiffList(out_, text("{}{}: ", prefix_, subject), comparisons_);
  }
  /// Adds a difference unless both are the same.
  void compare(std::string_view subject, const std::string& a, const std::string& b,
               DiffEntry::Kind kind = DiffEntry::Kind::kContent) {
    constexpr std::size_t kMost = 1000;
    if (a != b && out_.size() < kMost) out_.push_back({kind, text("{}{}", prefix_, subject), a, b});
  }
  void compare_layout(std::string_view subject, const std::string& a, const std::string& b) {
    compare(subject, a, b, DiffEntry::Kind::kLayout);
  }
  /// Compares what two sources hold; `what` says what that is.
  [[nodiscard]] Result<void> compare_bytes(std::string_view subject, const std::string& what,
                                           const ByteSource& a, const ByteSource& b,
                                           DiffEntry::Kind kind = DiffEntry::Kind::kContent) {
    ETSTREAM_ASSIGN(const auto different, comparisons_->first_difference(a, b));
    if (!different) return {};
    const auto told = [&](const ByteSource& source) {
      return text("{}{}{}", what, what.empty() ? "" : ", ", counted(source.size(), "byte"));
    };
    compare(subject, text("{}, which differ from byte {} on", told(a), *different), told(b), kind);
    return {};
  }

 private:
  DiffList(std::vector<DiffEntry>& out, std::string prefix, std::shared_ptr<Comparisons> comparisons)
      : out_(out), begin_(out.size()), prefix_(std::move(prefix)), comparisons_(std::move(comparisons)) {}

  std::vector<DiffEntry>& out_;
  std::size_t begin_;
  std::string prefix_;  // goes before each subject
  std::shared_ptr<Comparisons> comparisons_;
};

/// Entries of both by their keys, null where one has none.
template <class T>
[[nodiscard]] std::map<std::string, std::pair<const T*, const T*>> by_key(
    const std::vector<T>& a, const std::vector<T>& b, const std::function<std::string(const T&)>& key) {
  std::map<std::string, std::pair<const T*, const T*>> out;
  // A key that comes again is numbered, from where the one before it ended.
  const auto place = [&](const T& entry, auto member, std::map<std::string, int>& next) {
    const std::string first = key(entry);
    std::string name = first;
    for (int& i = next.try_emplace(first, 2).first->second; out[name].*member != nullptr; ++i) {
      name = text("{} ({})", first, i);
    }
    out[name].*member = &entry;
  };
  std::map<std::string, int> next_in_a;
  std::map<std::string, int> next_in_b;
  using Pair = std::pair<const T*, const T*>;
  for (const T& entry : a) place(entry, &Pair::first, next_in_a);
  for (const T& entry : b) place(entry, &Pair::second, next_in_b);
  return out;
}

/// Data that a file has under a name.
struct NamedPiece {
  std::string name;  // what it is compared by
  std::string what;  // "float32 [3, 4]"; "" where the file says no more than its bytes
  ByteSource data;
  std::string place = {};  // "at 128"
};

/// Pieces by name: what they are, their bytes, and where they lie.
[[nodiscard]] Result<void> compare_pieces(DiffList& list, const std::vector<NamedPiece>& a,
                                          const std::vector<NamedPiece>& b);
/// What there is of a piece, "" of none.
[[nodiscard]] std::string piece_text(const NamedPiece* piece);

/// "float32 [1, 3] in order [0, 1]", of a Tensor or a TensorLayout.
template <class Layout>
[[nodiscard]] std::string layout_text(const Layout& layout) {
  return text("{} {} in order {}", name_of(layout.scalar_type), list_text(layout.sizes),
              list_text(layout.dim_order));
}

// The result says whether both files have the same content.
[[nodiscard]] Result<bool> diff_files(const ProgramFile& a, const ProgramFile& b, DiffList list);
[[nodiscard]] Result<bool> diff_files(const BundledProgramFile& a, const BundledProgramFile& b,
                                      DiffList list);
/// Segments by index: where they are, how long and of what use, and in which bytes those of one size differ.
/// Differences but the first are of `kind`.
[[nodiscard]] Result<void> diff_segments(const ByteSource& a, const std::vector<SegmentInfo>& in_a,
                                         const ByteSource& b, const std::vector<SegmentInfo>& in_b,
                                         DiffEntry::Kind kind, DiffList& list);

/// Where things are in two programs, or in two tensor data files, whose content is the same or not.
template <class File>
[[nodiscard]] Result<void> diff_places(const File& a, const File& b, bool same, DiffList& list) {
  list.compare_layout("flatbuffer", counted(a.flatbuffer_size(), "byte"),
                      counted(b.flatbuffer_size(), "byte"));
  ETSTREAM_ASSIGN(const auto in_a, a.segments());
  ETSTREAM_ASSIGN(const auto in_b, b.segments());
  const auto kind = same ? DiffEntry::Kind::kLayout : DiffEntry::Kind::kContent;
  return diff_segments(a.file(), in_a, b.file(), in_b, kind, list);
}

}  // namespace etstream
