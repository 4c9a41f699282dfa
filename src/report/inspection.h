// SPDX-License-Identifier: BSD-3-Clause
//
// inspect() of a file that is open.
#pragma once

#include "etstream/inspect.h"
#include "report/any_file.h"

namespace etstream {

/// All but how many bytes were read. Errors: kCorrupt, kIo.
[[nodiscard]] Result<FileInspection> inspect(const AnyFile& file);

}  // namespace etstream
