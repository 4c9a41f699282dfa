// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/diff.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/io/derived_storage.h"
#include "etstream/inspect.h"
#include "files/diff_list.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/weight_sets.h"

namespace etstream {
namespace {

/// Makes the error about files of two kinds.
Error of_two_kinds(const AnyFile& a, const AnyFile& b) {
  const auto told = [](const AnyFile& file) {
    return text("{}, {}", source_of(file).name(), describe(kind_of(file)));
  };
  const bool has_bundle =
      std::holds_alternative<BundledProgramFile>(a) || std::holds_alternative<BundledProgramFile>(b);
  const bool has_program = std::holds_alternative<ProgramFile>(a) || std::holds_alternative<ProgramFile>(b);
  Error error = make_error(ErrorCode::kInvalidArgument, "expected two files of one kind, found {}, and {}",
                           told(a), told(b));
  if (has_bundle && has_program) error.advice = {AdviceTerm::kTakeProgramOut};
  return error;
}

template <class List, class Name>
std::string joined(const List& list, Name name) {
  std::string out;
  for (const auto& each : list) out += (out.empty() ? "" : ", ") + quote(each.*name);
  return out;
}

/// Adds the tensors of a file, and its name to their places if it has one of several.
void add_tensors(const std::vector<CheckpointTensor>& tensors, const ByteSource& file,
                 const std::string& name, std::vector<NamedPiece>& out) {
  for (const CheckpointTensor& tensor : tensors) {
    const auto offset = tensor.data.offset_in(file);
    const std::string in = name.empty() ? "" : text("in {}", name);
    const std::string at = offset || name.empty() ? text("at {}", offset.value_or(0)) : "";
    out.push_back({.name = quote(tensor.name),
                   .what = type_text(tensor),
                   .data = tensor.data,
                   .place = text("{}{}{}", in, in.empty() || at.empty() ? "" : " ", at),
                   .layout = tensor.layout});
  }
}

std::vector<NamedPiece> pieces_of(const std::vector<CheckpointTensor>& tensors, const ByteSource& file) {
  std::vector<NamedPiece> out;
  add_tensors(tensors, file, "", out);
  return out;
}

std::vector<NamedPiece> pieces_of(const FatContainerFile& container) {
  std::vector<NamedPiece> out;
  for (const FatPayload& payload : container.payloads()) {
    out.push_back({text("payload {}", quote(payload.name)), "", payload.data, text("at {}", payload.offset)});
  }
  return out;
}

Result<std::vector<NamedPiece>> pieces_of(const TensorDataFile& weights, const KeyNames& names) {
  ETSTREAM_ASSIGN(const auto entries, weights.entries());
  std::vector<NamedPiece> out;
  out.reserve(entries.size());
  for (const NamedTensorData& entry : entries) {
    out.push_back({.name = shown_name(names, entry.key),
                   .what = entry.layout ? layout_text(*entry.layout) : "no tensor",
                   .data = entry.data,
                   .place = text("in segment {}", entry.segment),
                   .key = names.contains(entry.key) ? quote(entry.key) : "",
                   .layout = entry.layout});
  }
  return out;
}

Result<bool> diff_files(const TensorDataFile& a, const TensorDataFile& b, DiffList list) {
  ETSTREAM_ASSIGN(const auto version_a, a.version());
  ETSTREAM_ASSIGN(const auto version_b, b.version());
  list.compare("version", std::to_string(version_a), std::to_string(version_b));
  ETSTREAM_ASSIGN(const auto pieces_a, pieces_of(a, list.names_a()));
  ETSTREAM_ASSIGN(const auto pieces_b, pieces_of(b, list.names_b()));
  ETSTREAM_TRY(compare_pieces(list, pieces_a, pieces_b));
  const bool same = list.is_same();
  ETSTREAM_TRY(diff_places(a, b, same, list));
  return same;
}

Result<bool> diff_files(const WeightFile& a, const WeightFile& b, DiffList list) {
  const auto format = [](const WeightFile& file) {
    return text("{}{}", describe(file.kind), file.version == 0 ? "" : text(" version {}", file.version));
  };
  list.compare_layout("format", format(a), format(b));
  if (a.kind == b.kind) ETSTREAM_TRY(list.compare_bytes("metadata", "", a.metadata, b.metadata));
  ETSTREAM_TRY(compare_pieces(list, pieces_of(a.tensors, a.file), pieces_of(b.tensors, b.file)));
  return list.is_same();
}

Result<bool> diff_files(const FatContainerFile& a, const FatContainerFile& b, DiffList list) {
  ETSTREAM_TRY(compare_pieces(list, pieces_of(a), pieces_of(b)));
  list.compare("order of payloads", joined(a.payloads(), &FatPayload::name),
               joined(b.payloads(), &FatPayload::name));
  return list.is_same();
}

Result<bool> diff_files(const NativePackageFile& a, const NativePackageFile& b, DiffList list) {
  ETSTREAM_TRY(list.compare_bytes("graph", "", a.graph(), b.graph()));
  ETSTREAM_TRY(compare_pieces(list, pieces_of(a.tensors(), a.file()), pieces_of(b.tensors(), b.file())));
  return list.is_same();
}

Result<bool> diff_files(const TensorDataFile& a, const WeightFile& b, const DiffList& list) {
  ETSTREAM_ASSIGN(const WeightFile one, open_weight_file(a.file().name(), a.file()));
  return diff_files(one, b, list);
}

Result<bool> diff_files(const WeightFile& a, const TensorDataFile& b, const DiffList& list) {
  ETSTREAM_ASSIGN(const WeightFile other, open_weight_file(b.file().name(), b.file()));
  return diff_files(a, other, list);
}

Result<bool> diff_opened(const AnyFile& a, const AnyFile& b, const DiffList& list) {
  return match(a, [&]<class A>(const A& one) {
    return match(b, [&]<class B>(const B& other) -> Result<bool> {
      if constexpr (requires { diff_files(one, other, list); }) {
        return diff_files(one, other, list);
      } else {
        return of_two_kinds(a, b);
      }
    });
  });
}

}  // namespace

std::string shown_name(const KeyNames& names, const std::string& key) {
  const auto name = names.find(key);
  return quote(name == names.end() ? key : name->second);
}

std::string piece_text(const NamedPiece* piece) {
  if (!piece) return "";
  return piece->what.empty() ? counted(piece->data.size(), "byte") : piece->what;
}

Result<void> compare_pieces(DiffList& list, const std::vector<NamedPiece>& a,
                            const std::vector<NamedPiece>& b) {
  for (const auto& [name, both] : by_key<NamedPiece>(a, b, &NamedPiece::name)) {
    const auto& [one, other] = both;
    if (!one || !other) {
      list.compare(name, piece_text(one), piece_text(other));
      continue;
    }
    list.compare(name, one->what, other->what);
    ETSTREAM_ASSIGN(const bool same, list.compare_data(name, *one, *other));
    if (same) list.compare(text("key of {}", name), one->key, other->key);
    list.compare_layout(name, one->place, other->place);
  }
  return {};
}

Result<void> diff_segments(const ByteSource& a, const std::vector<SegmentInfo>& in_a, const ByteSource& b,
                           const std::vector<SegmentInfo>& in_b, DiffEntry::Kind kind, DiffList& list) {
  const auto told = [](const std::vector<SegmentInfo>& segments, std::size_t i) {
    if (i >= segments.size()) return std::string();
    const std::string& use = segments[i].use;
    return text("{}{}{}", counted(segments[i].size, "byte"), use.empty() ? "" : " of ", printable(use));
  };
  for (std::size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
    const std::string subject = text("segment {}", i);
    list.compare_layout(subject, told(in_a, i), told(in_b, i));
    if (i >= in_a.size() || i >= in_b.size()) continue;
    list.compare_layout(subject, text("at {}", in_a[i].offset), text("at {}", in_b[i].offset));
    const bool is_used = !in_a[i].use.empty() || !in_b[i].use.empty();
    if (is_used || in_a[i].size != in_b[i].size) continue;
    ETSTREAM_ASSIGN(const ByteSource one, a.slice(in_a[i].offset, in_a[i].size));
    ETSTREAM_ASSIGN(const ByteSource other, b.slice(in_b[i].offset, in_b[i].size));
    ETSTREAM_TRY(list.compare_bytes(subject, "", one, other, kind));
  }
  return {};
}

namespace {

/// Returns whether a path stands for weights in several files.
Result<bool> is_of_several(const ReportedPath& path, const CheckpointOptions& options) {
  if (path.has_several || options.partial) return path.has_several;
  ETSTREAM_ASSIGN(const auto place, place_in_set(path, options.open_file));
  return place.has_value();
}

/// Returns the tensors of all files, with the file and the place of each.
std::vector<NamedPiece> pieces_of(const OpenedWeights& opened) {
  std::vector<NamedPiece> out;
  for (const GivenWeights& given : opened.given) {
    for (const WeightFile& file : given.files) {
      add_tensors(file.tensors, file.file, printable(file.path.substr(folder_of(file.path).size())), out);
    }
  }
  return out;
}

std::string format_of(const OpenedWeights& opened) {
  std::size_t files = 0;
  for (const GivenWeights& given : opened.given) files += given.files.size();
  const bool is_empty = files == 0;
  const FileKind kind = is_empty ? FileKind::kSafetensors : opened.given.front().files.front().kind;
  return text("{} in {}", describe(kind), counted(files, "file"));
}

/// Returns whether both are the same files, one after the other.
Result<bool> are_same_files(const OpenedWeights& a, const OpenedWeights& b) {
  const auto& one = a.given.front();
  const auto& other = b.given.front();
  if (one.index.empty() != other.index.empty() || one.files.size() != other.files.size()) return false;
  for (std::size_t i = 0; i < one.files.size(); ++i) {
    ETSTREAM_ASSIGN(const bool same, same_bytes(one.files[i].file, other.files[i].file));
    if (!same) return false;
  }
  return true;
}

Result<OpenedWeights> open_whole(const std::string& path, const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(OpenedWeights opened, open_weights({path}, options));
  if (!opened.problems.empty()) return std::move(opened.problems.front());
  return opened;
}

Result<FileDiff> diff_weights(const std::string& a, const std::string& b, const DiffOptions& options,
                              const CheckpointOptions& weights) {
  ETSTREAM_ASSIGN(const OpenedWeights one, open_whole(a, weights));
  ETSTREAM_ASSIGN(const OpenedWeights other, open_whole(b, weights));
  FileDiff out;
  ETSTREAM_ASSIGN(out.same_bytes, are_same_files(one, other));
  out.same_content = out.same_bytes;
  out.same_within_tolerance = out.same_bytes;
  if (out.same_bytes) return out;
  DiffList list(out.differences, options);
  list.compare_layout("format", format_of(one), format_of(other));
  ETSTREAM_TRY(compare_pieces(list, pieces_of(one), pieces_of(other)));
  out.same_content = list.is_same();
  out.same_within_tolerance = !list.has_content();
  return out;
}

/// Refuses an invalid tolerance.
Result<void> check(const DiffOptions& options) {
  if (!options.tolerance || options.tolerance->is_valid()) return {};
  return make_error(ErrorCode::kInvalidArgument, "a tolerance is negative or NaN");
}

/// Returns the same options, with the names beside the files if the options have none.
Result<DiffOptions> with_names(DiffOptions options, const std::string& a, const std::string& b,
                               const OpenFile& open_file) {
  if (options.names_a.empty()) {
    ETSTREAM_ASSIGN(options.names_a, read_key_names_beside(a, open_file));
  }
  if (options.names_b.empty()) {
    ETSTREAM_ASSIGN(options.names_b, read_key_names_beside(b, open_file));
  }
  return options;
}

}  // namespace

Result<FileDiff> diff(const std::string& a, const std::string& b, const DiffOptions& options,
                      const CheckpointOptions& weights) {
  return without_exceptions([&]() -> Result<FileDiff> {
    ETSTREAM_TRY(check(options));
    ETSTREAM_ASSIGN(const ReportedPath one, reported_path(a, weights.open_file));
    ETSTREAM_ASSIGN(const ReportedPath other, reported_path(b, weights.open_file));
    ETSTREAM_ASSIGN(const bool one_has_several, is_of_several(one, weights));
    ETSTREAM_ASSIGN(const bool other_has_several, is_of_several(other, weights));
    if (one_has_several || other_has_several) return diff_weights(a, b, options, weights);
    ETSTREAM_ASSIGN(const DiffOptions named, with_names(options, one.path, other.path, weights.open_file));
    return diff(one.file, other.file, named);
  });
}

Result<FileDiff> diff(const ByteSource& a, const ByteSource& b, const DiffOptions& options) {
  return without_exceptions([&]() -> Result<FileDiff> {
    ETSTREAM_TRY(check(options));
    ETSTREAM_TRY(file_kind(a));
    ETSTREAM_TRY(file_kind(b));
    FileDiff out;
    ETSTREAM_ASSIGN(out.same_bytes, same_bytes(a, b));
    out.same_content = out.same_bytes;
    out.same_within_tolerance = out.same_bytes;
    if (!out.same_bytes) {
      ETSTREAM_ASSIGN(const AnyFile one, open_any(a));
      ETSTREAM_ASSIGN(const AnyFile other, open_any(b));
      DiffList list(out.differences, options);
      ETSTREAM_ASSIGN(out.same_content, diff_opened(one, other, list));
      // Such files differ in the places of tables in a flatbuffer, in padding, or in bytes that nothing
      // refers to.
      const auto kind = out.same_content ? DiffEntry::Kind::kLayout : DiffEntry::Kind::kContent;
      if (out.differences.empty()) ETSTREAM_TRY(list.compare_bytes("file", "", a, b, kind));
      out.same_within_tolerance = out.same_content || !list.has_content();
    }
    ETSTREAM_TRY(a.check_unchanged());
    ETSTREAM_TRY(b.check_unchanged());
    return out;
  });
}

namespace {

/// Gives elements of four bits as bytes. A byte has two of them, with the first in the low half.
class UnpackedNibbles final : public DerivedStorage {
 public:
  explicit UnpackedNibbles(ByteSource packed) : packed_(std::move(packed)) {}

  std::uint64_t size() const noexcept override { return 2 * packed_.size(); }
  std::string name() const override { return packed_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(packed_); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::byte, 4096> piece;
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t at = offset + done;
      const std::size_t count = std::min<std::size_t>(out.size() - done, 2 * piece.size() - 1);
      const std::uint64_t first = at / 2;
      const std::span bytes(piece.data(), static_cast<std::size_t>((at + count + 1) / 2 - first));
      ETSTREAM_TRY(packed_.read_at(first, bytes));
      for (std::size_t i = 0; i < count; ++i) {
        const std::byte both = bytes[static_cast<std::size_t>((at + i) / 2 - first)];
        out[done + i] = (at + i) % 2 == 0 ? both & std::byte{15} : both >> 4;
      }
      done += count;
    }
    return {};
  }

 private:
  ByteSource packed_;
};

/// Returns the piece as a tensor whose elements fill its data; nothing if they don't.
std::optional<Tensor> as_tensor(const NamedPiece& piece) {
  if (!piece.layout) return std::nullopt;
  Tensor out{piece.layout->scalar_type, piece.layout->sizes, piece.layout->dim_order, piece.data};
  const auto size = byte_size(out.scalar_type, out.sizes);
  if (!size || *size != piece.data.size()) return std::nullopt;
  if (!piece.is_of_nibbles) return out;
  // The halves of a byte are elements of one more dimension, the innermost.
  out.sizes.push_back(2);
  out.dim_order.push_back(static_cast<std::uint8_t>(out.dim_order.size()));
  out.data = ByteSource(std::make_shared<UnpackedNibbles>(piece.data));
  return out;
}

}  // namespace

Result<std::optional<ElementComparisons::Compared>> ElementComparisons::compare(const NamedPiece& a,
                                                                                const NamedPiece& b) {
  using Found = std::optional<Compared>;
  if (a.layout != b.layout || a.is_of_nibbles != b.is_of_nibbles) return Found();
  const auto one = as_tensor(a);
  const auto other = as_tensor(b);
  if (!one || !other) return Found();
  const std::tuple key(a.data.place(), b.data.place(), one->scalar_type, a.is_of_nibbles);
  const auto known = known_.find(key);
  if (known != known_.end()) return Found(known->second.compared);
  Tolerance tolerance = tolerance_.value_or(Tolerance{.absolute = 0, .relative = 0});
  // The difference of two integers is an integer below 2^64.
  constexpr double kMost = 1e18;
  tolerance.integer = static_cast<std::uint64_t>(std::min(tolerance.absolute.value_or(0), kMost));
  ETSTREAM_ASSIGN(const Comparison comparison, etstream::compare(*one, *other, tolerance));
  const Compared compared{{comparison.elements, comparison.equal, comparison.not_finite,
                           comparison.largest_absolute_error, comparison.mean_absolute_error},
                          comparison.passed()};
  known_.emplace(key, Known{a.data, b.data, compared});
  return Found(compared);
}

Result<bool> DiffList::compare_data(std::string_view subject, const NamedPiece& a, const NamedPiece& b) {
  ETSTREAM_ASSIGN(const auto different, shared_->comparisons.first_difference(a.data, b.data));
  if (!different) return true;
  ETSTREAM_ASSIGN(const auto compared, shared_->elements.compare(a, b));
  const bool is_tolerated = compared && compared->passes && has_tolerance();
  const auto told = [](const NamedPiece& piece) {
    std::string out = piece.key.empty() ? "" : text("key {}, ", piece.key);
    if (!piece.what.empty()) out += text("{}, ", piece.what);
    return out + counted(piece.data.size(), "byte");
  };
  add({.kind = is_tolerated ? DiffEntry::Kind::kTolerated : DiffEntry::Kind::kContent,
       .subject = std::string(subject),
       .in_a = text("{}, which differ from byte {} on", told(a), *different),
       .in_b = told(b),
       .elements = compared ? std::optional(compared->difference) : std::nullopt});
  return false;
}

namespace {

std::string case_value_text(const Value& value) {
  return match(
      value, [](std::monostate) { return std::string("nothing"); },
      [](const Tensor& tensor) { return layout_text(tensor); },
      [](const auto& number) { return describe(ValueInfo(number)); });
}

Result<void> compare_case_values(DiffList& list, std::string_view which, const std::vector<Value>& a,
                                 const std::vector<Value>& b) {
  list.compare(text("number of {}s", which), std::to_string(a.size()), std::to_string(b.size()));
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const std::string subject = text("{} {}", which, i);
    const std::string what = case_value_text(a[i]);
    list.compare(subject, what, case_value_text(b[i]));
    const auto* left = std::get_if<Tensor>(&a[i]);
    const auto* right = std::get_if<Tensor>(&b[i]);
    if (left && right) ETSTREAM_TRY(list.compare_bytes(subject, what, left->data, right->data));
  }
  return {};
}

Result<void> compare_suites(DiffList list, const BundledProgramFile& a, const BundledProgramFile::Suite& in_a,
                            const BundledProgramFile& b, const BundledProgramFile::Suite& in_b) {
  list.compare("test cases", std::to_string(in_a.test_cases), std::to_string(in_b.test_cases));
  for (std::uint32_t i = 0; i < std::min(in_a.test_cases, in_b.test_cases); ++i) {
    ETSTREAM_ASSIGN(const MethodTestCase one, a.test_case(in_a, i));
    ETSTREAM_ASSIGN(const MethodTestCase other, b.test_case(in_b, i));
    DiffList within = list.within(text("case {}", i));
    ETSTREAM_TRY(compare_case_values(within, "input", one.inputs, other.inputs));
    ETSTREAM_TRY(
        compare_case_values(within, "expected output", one.expected_outputs, other.expected_outputs));
  }
  return {};
}

Result<bool> compare_programs(DiffList& list, const BundledProgramFile& a, const BundledProgramFile& b) {
  ETSTREAM_ASSIGN(const bool same, same_bytes(a.program(), b.program()));
  if (same) return true;
  ETSTREAM_ASSIGN(const ProgramFile one, a.open_program());
  ETSTREAM_ASSIGN(const ProgramFile other, b.open_program());
  return diff_files(one, other, list.within("program"));
}

}  // namespace

Result<bool> diff_files(const BundledProgramFile& a, const BundledProgramFile& b, DiffList list) {
  const auto format = [](const BundledProgramFile& bundle) {
    return bundle.format() == BundleFormat::kSegmented ? "segmented" : "bp08";
  };
  list.compare_layout("format", format(a), format(b));
  list.compare("version", std::to_string(a.version()), std::to_string(b.version()));
  ETSTREAM_TRY(compare_programs(list, a, b));
  list.compare_layout("program", text("at {}", a.program_offset()), text("at {}", b.program_offset()));
  const auto name = [](const BundledProgramFile::Suite& suite) {
    return text("test suite of {}", quote(suite.method_name));
  };
  for (const auto& [suite, both] : by_key<BundledProgramFile::Suite>(a.suites(), b.suites(), name)) {
    const auto told = [](const BundledProgramFile::Suite* one) {
      return one ? counted(one->test_cases, "case") : "";
    };
    if (both.first && both.second) {
      ETSTREAM_TRY(compare_suites(list.within(suite), a, *both.first, b, *both.second));
    } else {
      list.compare(suite, told(both.first), told(both.second));
    }
  }
  list.compare("order of test suites", joined(a.suites(), &BundledProgramFile::Suite::method_name),
               joined(b.suites(), &BundledProgramFile::Suite::method_name));
  return !list.has_content();
}

}  // namespace etstream
