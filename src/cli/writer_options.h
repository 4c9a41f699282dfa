// SPDX-License-Identifier: BSD-3-Clause
//
// The options by which commands write files as other releases do.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "etstream/writer_version.h"

namespace etstream::cli {

struct WriterOptions {
  std::optional<ExecutorchRelease> as_of;
  std::optional<VtableSharing> vtables;

  [[nodiscard]] WriterVersion version() const {
    const WriterVersion latest;
    return {as_of.value_or(latest.release), vtables.value_or(latest.vtables)};
  }
};

/// --as-of, into `as_of`, which outlives the command.
void add_as_of(CLI::App& command, std::optional<ExecutorchRelease>& as_of);
/// --flatbuffers, into `vtables`, which outlives the command.
void add_flatbuffers(CLI::App& command, std::optional<VtableSharing>& vtables);

}  // namespace etstream::cli
