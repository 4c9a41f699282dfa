// SPDX-License-Identifier: BSD-3-Clause
//
// The write step: writes a plan to a sink, front to back.
//
//   const auto plan = etstream::plan_copy(etstream::ByteSource::file("model.pte").value(), "program");
//   std::vector<std::byte> bytes;
//   const auto sink = etstream::open_memory_sink(bytes);
//   const auto written = etstream::write(plan, *sink);
//   if (!written) return written.error();
#pragma once

#include <cstdint>
#include <functional>

#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// A function that is called with the number of bytes written to a file so far and its total size, at least
/// every 16 MiB, in the thread that writes. It returns whether to go on: false ends the writing with
/// kInterrupted.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

/// Checks that no source of `plan` lies in `file`, which is written in place. Error: kInvalidArgument if one
/// does.
[[nodiscard]] ETSTREAM_EXPORT Result<void> check_apart(const FilePlan& plan, const FileIdentity& file);

/// Writes `plan` to `sink` and commits it. Errors: those of the sink and the sources; kInterrupted;
/// kInvalidArgument as in check_apart(), before the first byte. After an error nothing is committed, and
/// destroying the sink leaves its destination as it was.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write(const FilePlan& plan, Sink& sink,
                                                 const Progress& progress = {});

/// Does the same as write() without the commit, for several files that should appear together.
[[nodiscard]] ETSTREAM_EXPORT Result<void> write_uncommitted(const FilePlan& plan, Sink& sink,
                                                             const Progress& progress = {});

}  // namespace etstream
