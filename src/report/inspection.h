// SPDX-License-Identifier: BSD-3-Clause
//
// What inspect() is made of, for a file that is open.
#pragma once

#include <vector>

#include "etstream/inspect.h"
#include "report/any_file.h"

namespace etstream {

/// See read_contents(ByteSource).
[[nodiscard]] Result<std::vector<FileContent>> read_contents(const AnyFile& file);
/// See find_duplicates(ByteSource). `contents` are those of `file`.
[[nodiscard]] Result<std::vector<Duplicates>> find_duplicates(const ByteSource& file,
                                                              const std::vector<FileContent>& contents);

}  // namespace etstream
