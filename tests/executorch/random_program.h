// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace etstream {

/// Returns a program that ExecuTorch's runtime loads, the same for each seed: methods with every kind of
/// value, instruction and delegate, which call operators and backends that a test has to register.
/// FlatBuffers' headers don't go with ExecuTorch's, so that it is compiled by itself.
[[nodiscard]] std::string random_program(std::uint32_t seed);

}  // namespace etstream
