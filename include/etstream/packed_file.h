// SPDX-License-Identifier: BSD-3-Clause
//
// Packed files: any file in pieces of 1 MiB, each coded by zstd in the way that makes it smallest. Pieces
// don't depend on one another, so any byte is one piece away. schema/packed_file.md is the specification.
//
// An update is a packed file that takes from another file, its base, what the original has in common with it.
// It is restored with that file alone. The base of a program's update may be a checkpoint too: then a recipe
// in the update tells by which steps payloads come from its tensors, see match_base() of reweight.h.
//
// ByteSource::file() gives the original bytes of a packed file, also of NAME.etz if it is asked for NAME and
// there is no such file. open_file_sink() packs what is written to a path that ends in ".etz". What follows
// is for other places than these.
//
//   const auto packed = etstream::ByteSource::raw_file("model.pte.etz");
//   if (!packed) return packed.error();
//   const auto program = etstream::unpacked(*packed);
//   if (!program) return program.error();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// The end of a packed file's name: ".etz".
inline constexpr std::string_view kPackedSuffix = ".etz";

/// Returns the name that a file has when it is not packed: `name` without ".etz".
[[nodiscard]] constexpr std::string_view unpacked_name(std::string_view name) noexcept {
  if (name.ends_with(kPackedSuffix)) name.remove_suffix(kPackedSuffix.size());
  return name;
}

/// Returns whether `file` begins as packed files do. Errors: those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<bool> is_packed(const ByteSource& file);

/// Opens what an update is restored with: the file that it was made from if `recipe` is empty, or else what
/// the recipe makes of a checkpoint. With `checks_all`, all tensors that it takes are checked at once, and
/// otherwise each before it is used. UpdateBase of checkpoint.h has such a function.
using OpenBase = std::function<Result<ByteSource>(std::span<const std::byte> recipe, bool checks_all)>;

/// Returns the original bytes of a packed file. They are decoded as they are read, a piece at a time, and
/// checked by the hash of the piece. Of a read of 4 MiB or more, further threads decode the pieces, if
/// set_default_threads() asked for them. The thread that reads is the only one that reads `file`, and one
/// such read at a time is divided so. Offsets in messages about the packed file count its own bytes. Memory:
/// up to 6 pieces of 1 MiB, and 4 MiB for each thread that reads or decodes. An update needs its `base`: of a
/// file, all is read and compared with the hash in the update first; of a checkpoint, each tensor before it
/// is used. Errors: kUnsupported for another kind of file, a later version, or an update without its base;
/// kCorrupt for a file that is not whole; kInvalidArgument for another base; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> unpacked(ByteSource file, const OpenBase& base = {});

/// Sets what original() and ByteSource::file() restore updates with; without it they refuse updates. Not
/// while files are opened.
ETSTREAM_EXPORT void set_default_base(OpenBase base);

/// Returns the original bytes of `file` if it is packed, and any other file as it is. Errors: as unpacked().
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> original(ByteSource file);

/// Does what ByteSource::file() does, with `open` to open files as they lie: gives the original bytes of the
/// file at `path`, or at `path` with ".etz" if there is none. Errors: those of `open`, and as unpacked().
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> open_original(
    const std::string& path, const std::function<Result<ByteSource>(const std::string&)>& open);

/// The figures that a packed file states of itself.
struct PackedSummary {
  std::uint64_t packed_size = 0;    // in bytes
  std::uint64_t original_size = 0;  // in bytes
  std::uint64_t pieces = 0;
  ContentHash content_hash{};  // of the original bytes
};

/// Checks a packed file or an update as unpacked() does, but for its pieces, and returns its summary. Errors:
/// those of unpacked().
[[nodiscard]] ETSTREAM_EXPORT Result<PackedSummary> read_packed_summary(const ByteSource& file);

/// The figures that an update states of itself. Sizes are in bytes.
struct UpdateSummary : PackedSummary {
  std::uint64_t base_size = 0;
  ContentHash base_hash{};         // of all of the base, or of the recipe that makes it
  bool is_derived = false;         // whether the base is made of a checkpoint
  std::uint64_t changed_size = 0;  // of the original, what is not the same in the base
  /// A piece of 1 MiB of the original, or of what is left.
  struct Piece {
    std::uint64_t offset = 0;        // in the update
    std::uint64_t size = 0;          // in the update
    std::uint64_t changed_size = 0;  // of the original, what is not the same
  };
  std::vector<Piece> piece_list = {};
};

/// Checks an update, with all of its pieces as they are coded, and returns its summary. Memory: 2 MiB, and 24
/// bytes a piece. Errors: those of unpacked(), but for the base; kInvalidArgument for another packed file.
[[nodiscard]] ETSTREAM_EXPORT Result<UpdateSummary> read_update(const ByteSource& file);

/// Returns the summary of the packed file that `file`, which unpacked() or ByteSource::file() returned, is
/// all of; nothing for any other source.
[[nodiscard]] ETSTREAM_EXPORT std::optional<PackedSummary> packed_summary(const ByteSource& file);

/// Reads all pieces of such a file, and checks that their bytes have the hash of the whole. Does nothing for
/// any other source. Errors: kCorrupt; those of reading.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_packed(const ByteSource& file);

/// Sets how many threads of this process code and decode packed files, at most 64, where options don't say; 0
/// means one a processor, but at most 4. Until this is called, the thread that writes or reads does it alone,
/// and the library starts none. May be called at any time.
ETSTREAM_EXPORT void set_default_threads(unsigned threads) noexcept;

/// Options of packing and unpacking.
struct PackOptions {
  /// The threads that code, at most 64; 0 for as many as set_default_threads() said. Each takes up to 4 MiB,
  /// or 9 MiB with a base, and all else up to 16 MiB. The bytes that are written do not depend on it.
  unsigned threads = 0;
};

/// Returns the memory in bytes that a sink which packs takes, besides that of the sink it writes to.
[[nodiscard]] ETSTREAM_EXPORT std::uint64_t packing_memory(const PackOptions& options = {}) noexcept;

/// A range of a file whose bytes are, or are like, those from `base_offset` on in another file.
struct BaseRange {
  std::uint64_t offset = 0;       // in bytes
  std::uint64_t size = 0;         // in bytes
  std::uint64_t base_offset = 0;  // in bytes
  bool is_named = false;          // whether names say that elements lie at the same places in both

  friend bool operator==(const BaseRange&, const BaseRange&) = default;
};

/// The file that an update is made from, or what a recipe makes of a checkpoint.
struct Base {
  ByteSource file;
  ContentHash hash{};                  // of all its bytes, or of the recipe
  std::vector<BaseRange> ranges = {};  // of the update, in order and apart, inside both files
  std::vector<std::byte> recipe = {};  // empty for a file
};

/// Opens a sink that packs what it is given, and writes that to `packed`, which nothing was appended to. It
/// is committed with this one. With a base, which match_base() of diff.h finds, it writes an update:
/// what is not in the base, and the differences from it. A thread then takes up to 5 MiB more. Errors: those
/// of `packed`, and of reading the base; kTooLarge over 512 TiB.
[[nodiscard]] ETSTREAM_EXPORT std::unique_ptr<Sink> open_packing_sink(std::unique_ptr<Sink> packed,
                                                                      const PackOptions& options = {},
                                                                      std::optional<Base> base = {});

/// A function that fills its argument with the next bytes, and returns how many these are: fewer only at the
/// end.
using ReadBytes = std::function<Result<std::size_t>(std::span<std::byte>)>;

/// Reads a descriptor from its current position on; `name` stands for it in messages. `on_signal`, unless it
/// is empty, is called when a signal comes while it waits; its error ends the reading. Error: kIo.
[[nodiscard]] ETSTREAM_EXPORT ReadBytes descriptor_reader(int descriptor, std::string name,
                                                          std::function<Result<void>()> on_signal = {});
/// Reads all of a source, and has it drop the pages that were read.
[[nodiscard]] ETSTREAM_EXPORT ReadBytes source_reader(ByteSource source);
/// Returns `read` with a report, after each call, of the bytes that it has given, which are added to `done`,
/// of `size`. Error: kInterrupted if `progress` returns false.
[[nodiscard]] ETSTREAM_EXPORT ReadBytes reporting(ReadBytes read, Progress progress, std::uint64_t size,
                                                  std::uint64_t& done);

/// Appends what `read` gives to `sink`, which packs it, without a commit. `name` stands for the input in
/// messages. Errors: kInvalidArgument for what is packed already; those of `read` and of the sink.
[[nodiscard]] ETSTREAM_EXPORT Result<void> pack(const ReadBytes& read, const std::string& name, Sink& sink);

/// Unpacks what `read` gives, from the first to the last byte, such as from a pipe, and appends the original
/// bytes to `sink`, without a commit. Nothing was wrong with a file if this returns no error: all hashes are
/// checked. `name` stands for the input in messages. An update needs its base, as in unpacked(). Errors: as
/// there; kInvalidArgument for an update without a base, and for a base with what is no update; those of
/// `read`, of reading the base, and of the sink.
[[nodiscard]] ETSTREAM_EXPORT Result<void> unpack(const ReadBytes& read, const std::string& name, Sink& sink,
                                                  const PackOptions& options = {}, const OpenBase& base = {});

}  // namespace etstream
