// SPDX-License-Identifier: BSD-3-Clause
//
// AnyFile: an open file of any kind that etstream knows, and its pieces. A report visits the pieces; or the
// file, with a function for each kind, and does not compile if a kind is left out.
//
//   ETSTREAM_ASSIGN(const AnyFile file, open_any(source));
//   ETSTREAM_TRY(for_each_piece(file, Pieces::kAll, [](const Piece& piece) { ... return true; }));
//   match(file, [](const ProgramFile& program) { ... }, [](const TensorDataFile& weights) { ... }, ...);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/match.h"
#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/fat_container.h"
#include "etstream/file_kind.h"
#include "etstream/inspect.h"
#include "etstream/native_package.h"
#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/pte/backends/backend_payload.h"

namespace etstream {

/// Describes a tensor: "float32 [2, 3]", "Q4_0 [32, 64]".
[[nodiscard]] std::string type_text(const CheckpointTensor& tensor);

using AnyFile = std::variant<ProgramFile, BundledProgramFile, TensorDataFile, WeightFile, FatContainerFile,
                             NativePackageFile>;

/// Opens a file by how it begins. Errors: those of file_kind() and of opening that kind.
[[nodiscard]] Result<AnyFile> open_any(const ByteSource& file);
/// Opens a file of a kind that file_kind() told. Error: kUnsupported for an update, which is no whole file.
[[nodiscard]] Result<AnyFile> open_any(const ByteSource& file, FileKind kind);

[[nodiscard]] FileKind kind_of(const AnyFile& file) noexcept;
[[nodiscard]] const ByteSource& source_of(const AnyFile& file) noexcept;

/// The pieces that are asked for: all; or those of which no two have bytes in common, or else the same bytes,
/// as far as the tables of the file itself tell them.
enum class Pieces { kAll, kOutermost };
using VisitPiece = std::function<bool(const Piece&)>;

/// See for_each_piece(ByteSource).
[[nodiscard]] Result<void> for_each_piece(const AnyFile& file, Pieces pieces, const VisitPiece& visit);
/// Does the same for the outermost pieces of a bundle. `program` is what open_program() returned.
[[nodiscard]] Result<void> for_each_part(const BundledProgramFile& bundle, const Result<ProgramFile>& program,
                                         const VisitPiece& visit);

/// Returns a name from a file as a word of a path; see Piece.
[[nodiscard]] std::string path_word(std::string_view name, bool is_last);
/// Returns the path of a piece with a name that so many before it have.
[[nodiscard]] std::string numbered(std::string path, std::uint32_t before);
/// Returns the path of the data that tensors of a program have; "" for those without data in the file.
/// `above` goes before it: "program/".
[[nodiscard]] std::string data_path(std::string_view above, TensorStorage storage, std::uint32_t index);
[[nodiscard]] std::string named_path(std::string_view above, std::string_view key);
[[nodiscard]] std::string delegate_path(std::string_view method, std::size_t number);
/// Returns the paths of the parts of the data of the delegate with this path.
[[nodiscard]] std::vector<std::string> part_paths(std::string_view delegate, const DelegatePayload& payload);
/// Returns how the paths of the delegates of each method begin.
[[nodiscard]] std::vector<std::string> method_paths(std::string_view above,
                                                    std::span<const std::string> methods);

/// Returns for each element how many before it have the same name.
template <class List, class NameOf = std::identity>
[[nodiscard]] std::vector<std::uint32_t> repeats(const List& all, NameOf name_of = {}) {
  const auto name = [&](std::uint32_t i) -> const std::string& { return std::invoke(name_of, all[i]); };
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, name);
  std::vector<std::uint32_t> out(all.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (name(order[i]) == name(order[i - 1])) out[order[i]] = out[order[i - 1]] + 1;
  }
  return out;
}

// Functions of public headers for a ByteSource, here for an open file.

/// See memory_alignment(ByteSource). `program` is the one of the bundle.
[[nodiscard]] Result<std::uint64_t> memory_alignment(const ProgramFile& program);
[[nodiscard]] Result<std::uint64_t> memory_alignment(const BundledProgramFile& bundle,
                                                     const ProgramFile& program);
[[nodiscard]] Result<std::uint64_t> memory_alignment(const TensorDataFile& file);
[[nodiscard]] Result<std::uint64_t> memory_alignment(const FatContainerFile& container);
/// See read_contents(ByteSource). `say_more` adds to what the file says of a piece.
using SayMore = std::function<void(const Piece&, FileContent&)>;
[[nodiscard]] Result<std::vector<FileContent>> read_contents(const AnyFile& file,
                                                             const SayMore& say_more = {});
/// See find_duplicates(ByteSource). `contents` are those of `file`.
[[nodiscard]] Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file,
                                                              const std::vector<FileContent>& contents);
/// See verify(ProgramFile, ...). `requests` are the program's.
[[nodiscard]] Result<Findings> verify(const ProgramFile& program, const DataRequests& requests,
                                      const std::vector<const TensorDataFile*>& weights);

/// Lists the named data of a program that begins at `base` in its file, in its order, with `above` before the
/// paths of pieces, and then the data that it asks for and does not have. Errors: those of
/// read_named_data_uses(); kCorrupt.
[[nodiscard]] Result<std::vector<NamedDataInfo>> read_named_data_info(const ProgramFile& program,
                                                                      std::string_view above,
                                                                      std::uint64_t base,
                                                                      const KeyNames& names);

// The files that a path stands for in a report: one file, or the files of a checkpoint.

struct ReportedPath {
  std::string path;          // of the file; of a folder with one file, of that
  ByteSource file;           // or the index; nothing for a folder with several files
  bool has_several = false;  // whether it is an index, or a folder with several files
};

/// Opens a path for a report. Errors: those of opening the path; those of a folder without weights, or with
/// several.
[[nodiscard]] Result<ReportedPath> reported_path(const std::string& path, const OpenFile& open_file);

/// Returns the place of a file among those of its set; nothing for a file that is no part of one. Errors:
/// those of opening a GGUF file, which names its own place.
[[nodiscard]] Result<std::optional<SetPlace>> place_in_set(const ReportedPath& path,
                                                           const OpenFile& open_file);

}  // namespace etstream
