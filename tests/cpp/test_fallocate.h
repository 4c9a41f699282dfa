// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of fallocate() of a test program that has test_fallocate.cpp, on Linux.
#pragma once

#include <string>

namespace etstream::testing {

inline std::string reserved;    // the ranges, in the order of the calls
inline int reserve_error = 0;   // with which calls for room fail, or 0
inline int no_holes_error = 0;  // with which calls for holes fail, or 0

}  // namespace etstream::testing
