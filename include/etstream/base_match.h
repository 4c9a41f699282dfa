// SPDX-License-Identifier: BSD-3-Clause
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

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/packed_file.h"
#include "etstream/result.h"

namespace etstream {

/// Returns the ranges of `file` whose bytes are, or are like, bytes of `base`: tensors and payloads of the
/// same name, in any two files that read_contents() reads; the data of XNNPACK in the order in which
/// delegates ask for it, as its keys are hashes; and in what is left, bytes that lie anywhere in `base`.
/// These are found by a hash of 32 of every 256 bytes or more of `base`, so that there are at most 131072.
/// Reads all of `base` once, and what has no name in `file`. Memory: 4 MiB, that of read_contents() for both
/// files, and 24 bytes a range. Errors: those of reading; a file that is damaged, or of another kind, has no
/// names.
[[nodiscard]] ETSTREAM_EXPORT Result<Base> match_base(const ByteSource& file, const ByteSource& base);

}  // namespace etstream
