// SPDX-License-Identifier: BSD-3-Clause
//
// NumPy's .npy files, versions 1 to 3 (numpy.lib.format), for reading.
#pragma once

#include <optional>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"

namespace etstream {

/// Reads the type, sizes and data of the array in `file`, as a contiguous tensor. Its bytes stay there, and
/// those of an array in Fortran order are read in the order of its indices. Errors: kCorrupt; kUnsupported
/// for big-endian and structured arrays and for types that no tensor has (also for bfloat16 and float8, which
/// NumPy can't name in a file); kInvalidArgument for more than 16 dimensions.
[[nodiscard]] Result<Tensor> open_npy(const ByteSource& file);

/// Returns the beginning of a .npy file of `tensor`, before its data; nothing if NumPy has no such array, or
/// has another order of elements.
[[nodiscard]] std::optional<std::string> npy_header(const Tensor& tensor);

}  // namespace etstream
