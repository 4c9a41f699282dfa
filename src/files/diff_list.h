// SPDX-License-Identifier: BSD-3-Clause
//
// DiffList: the differences that are found, and the functions for each format that find them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/layout/same_bytes.h"
#include "etstream/diff.h"
#include "files/pieces.h"
#include "formats/tensor/dimensions.h"

namespace etstream {

/// Data that a file has under a name.
struct NamedPiece {
  std::string name;  // what it is compared by
  std::string what;  // "float32 [3, 4]"; "" where the file says no more than its bytes
  ByteSource data;
  std::string place = {};                   // "at 128"
  std::string key = {};                     // that it has in the file, where `name` is not that
  std::optional<TensorLayout> layout = {};  // of its elements, where that is known
  bool is_of_nibbles = false;               // two elements a byte, `layout` being of the bytes
};

/// Compares the elements of data, and reads each pair of places once, however many names they have.
class ElementComparisons {
 public:
  struct Compared {
    ElementDifference difference;
    bool passes = false;  // by the tolerance
  };

  explicit ElementComparisons(const std::optional<Tolerance>& tolerance) : tolerance_(tolerance) {}

  [[nodiscard]] bool has_tolerance() const noexcept { return tolerance_.has_value(); }
  /// Compares two pieces; returns nothing if the elements of one are not known, or their layouts differ.
  [[nodiscard]] Result<std::optional<Compared>> compare(const NamedPiece& a, const NamedPiece& b);

 private:
  struct Known {
    ByteSource a;  // which keeps its place from being that of another source
    ByteSource b;
    Compared compared;
  };
  std::optional<Tolerance> tolerance_;
  std::map<std::tuple<SourcePlace, SourcePlace, ScalarType, bool>, Known> known_;
};

class DiffList {
 public:
  /// `options` outlive it.
  DiffList(std::vector<DiffEntry>& out, const DiffOptions& options)
      : DiffList(out, {}, std::make_shared<Shared>(options)) {}

  /// Returns whether anything that was added since this list was made differs in content by more than the
  /// tolerance.
  [[nodiscard]] bool has_content() const { return shared_->content > content_before_; }
  /// Returns whether nothing that was added since differs, in content or in elements within the tolerance.
  [[nodiscard]] bool is_same() const { return !has_content() && !has_tolerated(); }
  [[nodiscard]] bool has_tolerated() const { return shared_->tolerated > tolerated_before_; }
  [[nodiscard]] bool has_tolerance() const noexcept { return shared_->elements.has_tolerance(); }
  /// Returns the names that the keys of named data stand for, in both files.
  [[nodiscard]] const KeyNames& names_a() const { return shared_->options.names_a; }
  [[nodiscard]] const KeyNames& names_b() const { return shared_->options.names_b; }

  [[nodiscard]] DiffList within(std::string_view subject) const {
    return DiffList(out_, text("{}{}: ", prefix_, subject), shared_);
  }
  /// Adds a difference. All are counted, but only the first are kept.
  void add(DiffEntry entry) {
    constexpr std::size_t kMost = 1000;
    if (entry.kind == DiffEntry::Kind::kContent) ++shared_->content;
    if (entry.kind == DiffEntry::Kind::kTolerated) ++shared_->tolerated;
    if (out_.size() >= kMost) return;
    entry.subject = prefix_ + entry.subject;
    out_.push_back(std::move(entry));
  }
  /// Adds a difference unless both are the same.
  void compare(std::string_view subject, const std::string& a, const std::string& b,
               DiffEntry::Kind kind = DiffEntry::Kind::kContent) {
    if (a != b) add({kind, std::string(subject), a, b});
  }
  void compare_layout(std::string_view subject, const std::string& a, const std::string& b) {
    compare(subject, a, b, DiffEntry::Kind::kLayout);
  }
  /// Compares the bytes of two sources; `what` describes them.
  [[nodiscard]] Result<void> compare_bytes(std::string_view subject, const std::string& what,
                                           const ByteSource& a, const ByteSource& b,
                                           DiffEntry::Kind kind = DiffEntry::Kind::kContent) {
    ETSTREAM_ASSIGN(const auto different, shared_->comparisons.first_difference(a, b));
    if (!different) return {};
    const auto told = [&](const ByteSource& source) {
      return text("{}{}{}", what, what.empty() ? "" : ", ", counted(source.size(), "byte"));
    };
    compare(subject, text("{}, which differ from byte {} on", told(a), *different), told(b), kind);
    return {};
  }
  /// Compares the data of two pieces, and its elements if it differs. Returns whether the bytes are equal.
  [[nodiscard]] Result<bool> compare_data(std::string_view subject, const NamedPiece& a, const NamedPiece& b);

 private:
  /// The state that a list and the lists within it share.
  struct Shared {
    explicit Shared(const DiffOptions& given) : options(given), elements(given.tolerance) {}
    const DiffOptions& options;
    Comparisons comparisons;
    ElementComparisons elements;
    std::uint64_t content = 0;  // how many differences there were of it
    std::uint64_t tolerated = 0;
  };

  DiffList(std::vector<DiffEntry>& out, std::string prefix, std::shared_ptr<Shared> shared)
      : out_(out),
        prefix_(std::move(prefix)),
        shared_(std::move(shared)),
        content_before_(shared_->content),
        tolerated_before_(shared_->tolerated) {}

  std::vector<DiffEntry>& out_;
  std::string prefix_;  // goes before each subject
  std::shared_ptr<Shared> shared_;
  std::uint64_t content_before_;
  std::uint64_t tolerated_before_;
};

/// Pairs the entries of both by their keys. An entry is null if one file lacks its key.
template <class T>
[[nodiscard]] std::map<std::string, std::pair<const T*, const T*>> by_key(
    const std::vector<T>& a, const std::vector<T>& b, const std::function<std::string(const T&)>& key) {
  std::map<std::string, std::pair<const T*, const T*>> out;
  // A key that comes again gets a number, counted from the last one.
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

/// Compares pieces by name: their descriptions, bytes and places.
[[nodiscard]] Result<void> compare_pieces(DiffList& list, const std::vector<NamedPiece>& a,
                                          const std::vector<NamedPiece>& b);
/// Describes a piece; "" for none.
[[nodiscard]] std::string piece_text(const NamedPiece* piece);

/// Describes the layout of a Tensor or a TensorLayout: "float32 [1, 3] in order [0, 1]".
template <class Layout>
[[nodiscard]] std::string layout_text(const Layout& layout) {
  return text("{} {} in order {}", name_of(layout.scalar_type), list_text(layout.sizes),
              list_text(layout.dim_order));
}

// These functions return whether both files have the same content.
[[nodiscard]] Result<bool> diff_files(const ProgramFile& a, const ProgramFile& b, DiffList list);
[[nodiscard]] Result<bool> diff_files(const BundledProgramFile& a, const BundledProgramFile& b,
                                      DiffList list);
/// Compares segments by index: their places, sizes and uses, which are layout. Their content is compared by
/// its name. If two segments of one size have no use, their bytes are compared too, and a difference is of
/// `kind`.
[[nodiscard]] Result<void> diff_segments(const ByteSource& a, const std::vector<SegmentInfo>& in_a,
                                         const ByteSource& b, const std::vector<SegmentInfo>& in_b,
                                         DiffEntry::Kind kind, DiffList& list);

/// Returns the quoted name that a key stands for, or the key if it has none.
[[nodiscard]] std::string shown_name(const KeyNames& names, const std::string& key);

/// Compares the places of all parts of two programs, or of two tensor data files. `same` tells whether their
/// content is the same.
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
