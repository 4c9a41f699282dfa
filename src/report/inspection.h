// SPDX-License-Identifier: BSD-3-Clause
//
// What inspect() is made of, for a file that is open.
#pragma once

#include <vector>

#include "etstream/inspect.h"
#include "report/any_file.h"

namespace etstream {

/// See find_duplicates(ByteSource). `inspection` is that of `file`.
[[nodiscard]] Result<std::vector<Duplicates>> find_duplicates(const AnyFile& file,
                                                              const FileInspection& inspection);

}  // namespace etstream
