// SPDX-License-Identifier: BSD-3-Clause
//
// Files as storage for ByteSource.
#pragma once

#include <memory>
#include <string>

#include "etstream/byte_source.h"

namespace etstream {

/// The regular file at `path`; see ByteSource::file for bounds and errors.
[[nodiscard]] Result<std::shared_ptr<const ByteStorage>> open_file_storage(const std::string& path);

}  // namespace etstream
