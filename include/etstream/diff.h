// SPDX-License-Identifier: BSD-3-Clause
//
// Finds what differs between two files, in the terms of their format.
//
//   const auto a = etstream::ByteSource::file("a.pte").value();
//   const auto b = etstream::ByteSource::file("b.pte").value();
//   const auto found = etstream::diff(a, b);
//   if (!found) return found.error();
//   for (const auto& one : found->differences) std::puts(one.subject.c_str());
//
// Finds what two files have in common, for an update (packed_file.h) that makes one from the other.
//
//   const auto now = etstream::ByteSource::file("new.pte");
//   const auto old = etstream::ByteSource::file("old.pte");
//   if (!now || !old) return now ? old.error() : now.error();
//   auto base = etstream::match_base(*now, *old);
//   if (!base) return base.error();
//   std::vector<std::byte> update;
//   const auto sink = etstream::open_packing_sink(etstream::open_memory_sink(update), {}, *std::move(base));
//   const auto packed = etstream::pack(etstream::source_reader(*now), "new.pte", *sink);
//   if (!packed) return packed.error();
//   const auto done = sink->commit();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/packed_file.h"
#include "etstream/program_weights.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// The differences between the elements of two tensors of one type and shape.
struct ElementDifference {
  std::uint64_t elements = 0;    // how many there are
  std::uint64_t equal = 0;       // how many of them are; NaN equals NaN
  std::uint64_t not_finite = 0;  // how many are not, as one of both is NaN or infinite
  /// The largest and the mean of the absolute differences of elements that are finite in both. For data of
  /// four bits, they are in steps of its quantization.
  double largest = 0;
  double mean = 0;
};

/// A difference between two files.
struct DiffEntry {
  /// The kind of a difference: in content, only in the place in the file, or in elements by no more than the
  /// tolerance.
  enum class Kind { kContent, kLayout, kTolerated };
  Kind kind = Kind::kContent;
  std::string subject;  // "method 'forward': operator aten::add.out", "segment 2"
  std::string in_a;     // what each file has: "3 calls"; "" for nothing
  std::string in_b;
  /// The differences in numbers, for data that both files have in one type and shape, and whose elements are
  /// known. Of payloads that overlap very often, only the first have them.
  std::optional<ElementDifference> elements = std::nullopt;
};

/// Options of diff().
struct DiffOptions {
  /// The tolerance within which the elements of constants, of named data and of weights count as equal.
  /// Integers, such as quantized weights, count as equal if they differ by no more than `absolute`. Without a
  /// tolerance, any difference is one of content.
  std::optional<Tolerance> tolerance = std::nullopt;
  /// The names that the keys of named data stand for, in each file.
  KeyNames names_a = {};
  KeyNames names_b = {};
};

/// The result of diff().
struct FileDiff {
  bool same_bytes = false;
  /// True if laying out either file again gives the other (etstream/program_plan.h, for programs), so that
  /// all differences are in layout. The order of named data is layout, as programs ask for it by key.
  bool same_content = false;
  /// True if the content is the same except for elements within the tolerance, and keys that follow from
  /// them.
  bool same_within_tolerance = false;
  std::vector<DiffEntry> differences;
};

/// Compares two programs (.pte), two files of weights, each tensor data (.ptd), safetensors, GGUF or a torch
/// file, two bundles (.bpte) of either format, two fat containers (.fat), or two packages (.ptn). For
/// programs: methods, their signatures, operators by calls, instructions, values, delegates, memory plans;
/// constants and initial data by name, shape and bytes, wherever they are in the file; the named data that
/// delegates ask for in the order in which they ask, and other named data by key; places of segments. For
/// bundles: the programs inside, and test cases value by value. For weights: tensors by name, type, shape and
/// bytes, and the metadata of two GGUF files. For fat containers: payloads by name, and their order. For
/// packages: the graph, and constants by name, type, shape and bytes. Payloads are read and compared in 512
/// KiB of memory; otherwise memory grows with the metadata. At most 1000 differences are listed. Errors:
/// kInvalidArgument for files of different kinds, or a tolerance that is negative or NaN; errors opening or
/// reading either.
[[nodiscard]] ETSTREAM_EXPORT Result<FileDiff> diff(const ByteSource& a, const ByteSource& b,
                                                    const DiffOptions& options = {});

/// Compares what two paths stand for: two files, as diff(ByteSource, ByteSource) does, or weights of which at
/// least one is in several files, as open_checkpoint() finds them: by name, type, shape and bytes, whatever
/// the formats. With weights.partial, a file of a set is compared by itself. Where the options have no names
/// for a file, those of read_key_names_beside() count. Errors: those of both.
[[nodiscard]] ETSTREAM_EXPORT Result<FileDiff> diff(const std::string& a, const std::string& b,
                                                    const DiffOptions& options = {},
                                                    const CheckpointOptions& weights = {});

/// Returns the ranges of `file` whose bytes are, or are like, bytes of `base`: tensors and payloads of the
/// same name, in any two files that read_contents() reads; the data of XNNPACK in the order in which
/// delegates ask for it, as its keys are hashes; and in what is left, bytes that lie anywhere in `base`.
/// These are found by a hash of 32 of every 256 bytes or more of `base`, so that there are at most 131072.
/// Reads all of `base` once, and what has no name in `file`. Memory: 4 MiB, that of read_contents() for both
/// files, and 24 bytes a range. Errors: those of reading; a file that is damaged, or of another kind, has no
/// names.
[[nodiscard]] ETSTREAM_EXPORT Result<Base> match_base(const ByteSource& file, const ByteSource& base);

}  // namespace etstream
