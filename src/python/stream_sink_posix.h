// SPDX-License-Identifier: BSD-3-Clause
//
// Sinks to what may keep a writer waiting, a pipe or a socket, which Ctrl-C gets through to.
#pragma once

#include <memory>
#include <string>

#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream::python {

/// A descriptor, which stays the caller's, written from its position on.
[[nodiscard]] std::unique_ptr<Sink> open_descriptor(int descriptor);

[[nodiscard]] bool is_fifo(const std::string& path);
/// Waits for a reader. Without the GIL. Error: kIo.
[[nodiscard]] Result<std::unique_ptr<Sink>> open_fifo(const std::string& path);

}  // namespace etstream::python
