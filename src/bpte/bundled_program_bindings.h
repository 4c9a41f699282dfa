// SPDX-License-Identifier: BSD-3-Clause
//
// How the description of a bundled program gives the fields that BP08 and segmented bundles have in common.
#pragma once

#include <span>

#include "flatbuffer/struct_reader.h"

namespace etstream {

/// The root is a BundledProgram.
[[nodiscard]] std::span<const FieldBinding> bundled_program_bindings();

}  // namespace etstream
