// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes of a flatbuffer belong to an object, by FlatBuffers' reflection: a judge that shares no code
// with src/flatbuffer.
#pragma once

#include <string>
#include <vector>

namespace etstream {

/// For each byte of `flatbuffer`, which is sound, whether the root leads to it. `schema` is a file in
/// schema/.
std::vector<bool> used_bytes(const std::string& flatbuffer, const std::string& schema);

}  // namespace etstream
