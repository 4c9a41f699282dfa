// SPDX-License-Identifier: BSD-3-Clause
//
// The named data of a program with its users.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/inspect.h"
#include "etstream/key_names.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// Lists the named data of a program that begins at `base` in its file, in its order, and then the data that
/// it asks for and does not have. Errors: those of read_named_data_uses(); kCorrupt.
[[nodiscard]] Result<std::vector<NamedDataInfo>> read_named_data_info(const ProgramFile& program,
                                                                      std::uint64_t base,
                                                                      const KeyNames& names);

}  // namespace etstream
