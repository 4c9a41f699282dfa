// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of a flatbuffer that belong to an object, by FlatBuffers' reflection: a judge that shares no code
// with src/flatbuffer.
#pragma once

#include <string>
#include <vector>

namespace etstream {

/// Returns for each byte of `flatbuffer`, which is sound, whether the root leads to it. `schema` is a file in
/// schema/.
std::vector<bool> used_bytes(const std::string& flatbuffer, const std::string& schema);

}  // namespace etstream
