// SPDX-License-Identifier: BSD-3-Clause
//
// What XNNPACK's backend makes of a part of a program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "flatbuffer/flatbuffer_view.h"
#include "pte/xnnpack_fields.h"

namespace etstream {

/// The backend's id.
inline constexpr std::string_view kXnnpackBackend = "XnnpackBackend";

/// A payload that was opened: its graph, of the schema in xnnpack_graph.fbs.
struct XnnpackPayload {
  FlatbufferView graph;
  const xnnpack::Fields& fields;     // of its schema
  bool has_header = false;           // or all constants are in the graph
  std::uint64_t constants_size = 0;  // of what is behind the graph, in bytes
};

/// The graph's structure is checked. `name` is what messages call it. Errors: kCorrupt, naming offset,
/// expected and found; kIo.
[[nodiscard]] Result<XnnpackPayload> open_xnnpack(const ByteSource& payload, const std::string& name);

/// A constant that is not in the payload.
struct XnnpackConstant {
  std::string key;
  std::uint64_t size = 0;  // the bytes of it that are read
};

/// Those that ExecuTorch 1.5.1 asks for when it loads `payload`, in its order. `name` is what messages call
/// it. Memory: that of the keys. Time: in proportion to the graph's size.
/// Errors: kCorrupt for what XNNPACK does not load, naming offset, expected and found; kTooLarge for a key
/// over 1 MiB; kIo.
[[nodiscard]] Result<std::vector<XnnpackConstant>> read_xnnpack_constants(const ByteSource& payload,
                                                                          const std::string& name);

}  // namespace etstream
