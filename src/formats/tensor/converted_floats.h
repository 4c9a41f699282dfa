// SPDX-License-Identifier: BSD-3-Clause
//
// Floating-point data in another type, converted while it is read.
#pragma once

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"

namespace etstream {

/// Returns the elements of `source`, of the type `from`, as elements of the type `to`: float16, bfloat16,
/// float32, float64 and the four float8 types. A read takes at most 80 KiB of memory.
///
/// The bits are those that torch 2.13 gives on x86-64 for `tensor.to(dtype)`. All values go through float32,
/// so that a float64 is rounded twice on its way to 16 or 8 bits; each time to the nearest, and in a tie to
/// the even one. Too large a value becomes infinity. In a type without infinity it becomes the largest number
/// (float8_e4m3fn) or NaN (the FNUZ types). Torch's NaN may depend on how many elements its loop takes at
/// once. Here it is always the NaN of its AVX2 loops: from float32 and float64 to bfloat16 it is 0xFFFF, from
/// the other types 0x7FC0.
///
/// Errors: kInvalidArgument for another type, or a source that ends within an element; kTooLarge over 2^64 -
/// 1 bytes.
[[nodiscard]] Result<ByteSource> convert_floats(ByteSource source, ScalarType from, ScalarType to);

}  // namespace etstream
