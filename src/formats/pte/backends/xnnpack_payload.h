// SPDX-License-Identifier: BSD-3-Clause
//
// The graphs that XNNPACK's backend makes of parts of a program: the data that they ask for, whether the
// backend can load them, and the arguments that their calls need.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/findings.h"
#include "etstream/result.h"
#include "flatbuffer/flatbuffer_view.h"
#include "formats/pte/backends/xnnpack_fields.h"

namespace etstream {

/// The backend's id.
inline constexpr std::string_view kXnnpackBackend = "XnnpackBackend";

/// A payload that was opened: its graph, of the schema in xnnpack_graph.fbs.
struct XnnpackPayload {
  FlatbufferView graph;
  const xnnpack::Fields& fields;       // of its schema
  bool has_header = false;             // or all constants are in the graph
  std::uint64_t constants_offset = 0;  // of what is behind the graph, in the payload, in bytes
  std::uint64_t constants_size = 0;    // in bytes
  std::uint64_t graph_offset = 0;      // in the payload, in bytes
};

/// Opens a payload and checks the graph's structure. `name` is what messages call it. Errors: kCorrupt,
/// naming offset, expected and found; kIo.
[[nodiscard]] Result<XnnpackPayload> open_xnnpack(const ByteSource& payload, const std::string& name);

/// Named data that a payload asks for.
struct NamedDataRequest {
  std::string key;
  std::optional<std::uint64_t> size;  // in bytes, where the payload says it
};

/// A tensor that a call passes.
struct XnnpackArgument {
  std::uint32_t number = 0;  // among the call's arguments
  std::uint32_t width = 0;   // the bytes of an element; 0 where they can't be told
};

/// The bytes of the named data that a program has itself, by key.
using NamedDataSizes = std::map<std::string, std::uint64_t>;

/// Adds to `findings` the parts of `payload` that ExecuTorch 1.5.1 would refuse, or crash on: tensors whose
/// constants or scales are incomplete, or are smaller than needed in the program's own named data; nodes of
/// tensors that don't exist. Constants themselves are not read. Returns the tensors that calls pass, as far
/// as the graph is sound. `name` is what messages call it. Memory: 48 bytes a tensor. Time: in proportion to
/// the graph's size. Errors: those of reading except kCorrupt, which is a finding.
[[nodiscard]] Result<std::vector<XnnpackArgument>> verify_xnnpack(const ByteSource& payload,
                                                                  const std::string& name,
                                                                  const NamedDataSizes& named_data,
                                                                  Findings& findings);

}  // namespace etstream
