// SPDX-License-Identifier: BSD-3-Clause
//
// What program_weights.h tells of a program, from its requests, which are read once.
#pragma once

#include <string>
#include <vector>

#include "etstream/findings.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"
#include "pte/data_requests.h"

namespace etstream {

/// See verify(ProgramFile, ...). `requests` are the program's.
[[nodiscard]] Result<Findings> verify(const ProgramFile& program, const DataRequests& requests,
                                      const std::vector<const TensorDataFile*>& weights);

}  // namespace etstream
