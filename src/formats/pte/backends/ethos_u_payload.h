// SPDX-License-Identifier: BSD-3-Clause
//
// The streams of blocks that Arm's compiler makes for Ethos-U processors: a name of 16 bytes, u32 size, a
// byte that is 1 if the data is the key of named data, 11 reserved bytes, and data up to a multiple of 16
// (backends/arm/arm_vela.py and backends/arm/runtime/VelaBinStream.cpp of ExecuTorch 1.5.1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// The backend's id.
inline constexpr std::string_view kEthosUBackend = "EthosUBackend";

struct EthosUBlock {
  std::string name;          // "cmd_data"
  std::uint64_t offset = 0;  // of its data in the payload, in bytes
  std::uint32_t size = 0;    // of its data, in bytes, without padding
  std::string key;           // of the named data that has its content; empty if the payload has it
};

/// An input or output, and its place in the memory for working data.
struct EthosUTensor {
  std::array<std::int32_t, 6> shape{};
  std::int32_t element_size = 0;  // in bytes
  std::int32_t offset = 0;        // in bytes
  std::int32_t region = 0;
};

/// A stream. Where several blocks have the same name, ExecuTorch uses the last one; so do these fields. A
/// field is empty where the stream has no such block, or where the block's content is named data.
struct EthosUPayload {
  std::vector<EthosUBlock> blocks;            // also the empty ones that begin and end the stream
  std::optional<std::uint32_t> command_size;  // of the processor's commands, in bytes
  std::optional<std::uint32_t> weight_size;   // in bytes
  std::optional<std::uint32_t> scratch_size;  // of the memory for working data, in bytes
  std::vector<EthosUTensor> inputs;
  std::vector<EthosUTensor> outputs;
};

/// Reads a stream as ExecuTorch 1.5.1 does. `name` is what messages call it. Weights and commands are not
/// read, but for the 4 bytes that commands begin with. Memory: at most 2 MiB for each of the blocks, the
/// inputs and the outputs, of up to 16384 blocks and 32768 tensors each. Errors: kCorrupt, naming offset,
/// expected and found; kIo.
[[nodiscard]] Result<EthosUPayload> read_ethos_u(const ByteSource& payload, const std::string& name);

}  // namespace etstream
