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

/// The type, sizes and data of the array in `file`, as a contiguous tensor; its bytes stay there, and those
/// of an array in Fortran order are read in the order of its indices. Errors: kCorrupt; kUnsupported for
/// big-endian and structured arrays and for types that no tensor has (bfloat16 and float8 are among them:
/// NumPy can't name them in a file); kInvalidArgument for more than 16 dimensions.
[[nodiscard]] Result<Tensor> open_npy(const ByteSource& file);

/// What a .npy file of `tensor` begins with, before its data; none if NumPy has no such array, or another
/// order of elements.
[[nodiscard]] std::optional<std::string> npy_header(const Tensor& tensor);

}  // namespace etstream
