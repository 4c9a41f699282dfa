// SPDX-License-Identifier: BSD-3-Clause
//
// Open descriptors as sources and as sinks. Ctrl-C gets through to a sink that keeps its writer waiting, as a
// pipe or a socket may.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream::python {

/// Returns a range of the file at `descriptor`, which is duplicated. Messages call it `name`. Raises IoError,
/// and InvalidArgumentError for a range that is not in the file.
[[nodiscard]] ByteSource open_descriptor_source(int descriptor, std::uint64_t offset, std::uint64_t size,
                                                std::string name);

/// Opens a sink to a descriptor, which stays the caller's. It is written from its position on.
[[nodiscard]] std::unique_ptr<Sink> open_descriptor(int descriptor);

[[nodiscard]] bool is_fifo(const std::string& path);
/// Waits for a reader. Without the GIL. Error: kIo.
[[nodiscard]] Result<std::unique_ptr<Sink>> open_fifo(const std::string& path);

}  // namespace etstream::python
