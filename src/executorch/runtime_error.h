// SPDX-License-Identifier: BSD-3-Clause
//
// ExecuTorch's errors among ours.
#pragma once

#include <executorch/runtime/core/error.h>

#include "base/text.h"
#include "etstream/result.h"

namespace etstream {

/// "`what`: ExecuTorch says InvalidProgram (0x23)".
[[nodiscard]] inline Error runtime_error(executorch::runtime::Error error, std::string_view what) {
  using Code = executorch::runtime::Error;
  const bool memory = error == Code::MemoryAllocationFailed || error == Code::OutOfResources;
  const bool missing = error == Code::OperatorMissing || error == Code::NotSupported ||
                       error == Code::NotFound || error == Code::NotImplemented;
  const ErrorCode code = memory                           ? ErrorCode::kOutOfMemory
                         : missing                        ? ErrorCode::kUnsupported
                         : error == Code::InvalidArgument ? ErrorCode::kInvalidArgument
                         : error == Code::AccessFailed    ? ErrorCode::kIo
                                                          : ErrorCode::kCorrupt;
  return make_error(code, "{}: ExecuTorch says {}", what, executorch::runtime::to_string(error));
}

}  // namespace etstream
