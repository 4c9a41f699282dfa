// SPDX-License-Identifier: BSD-3-Clause
//
// The write step: one walk over a layout, front to back, into a sink.
//
//   const auto layout = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   std::vector<std::byte> bytes;
//   const auto sink = etstream::open_memory_sink(bytes);
//   const auto written = etstream::write(layout, *sink);
//   if (!written) return written.error();
#pragma once

#include <cstdint>
#include <functional>

#include "etstream/export.h"
#include "etstream/layout.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// Called with the bytes written so far to a file and those of the whole file, at least every 16 MiB, in the
/// thread that writes. Returns whether to go on: false ends the writing with kInterrupted.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

/// Writes `layout` to `sink` and commits it. Errors: the sink's and the sources' own, kInterrupted. After
/// an error nothing is committed, and destroying the sink leaves its destination as it was.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write(const Layout& layout, Sink& sink,
                                                 const Progress& progress = {});

/// As write(), without the commit: for whoever has several files that are to appear together.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_uncommitted(const Layout& layout, Sink& sink,
                                                             const Progress& progress = {});

}  // namespace etstream
