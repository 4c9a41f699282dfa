// SPDX-License-Identifier: BSD-3-Clause
//
// Tells what the data of a program's delegates is, as far as its own header says it, and where its parts are.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   const auto payloads = etstream::read_delegate_payloads(*program);
//   if (!payloads) return payloads.error();
//   for (const etstream::DelegatePayload& payload : *payloads) std::puts(payload.format.c_str());
//
// Known are the payloads of XNNPACK, Ethos-U, Vulkan and WebGPU. Those of CUDA, Core ML, MLX, QNN, TOSA and
// VGF are told by their magics alone.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/program.h"
#include "etstream/result.h"

namespace etstream {

/// A part of a delegate's data that its header names.
struct PayloadPart {
  std::string name;          // "weight_data", "model.mlpackage/Manifest.json"
  std::uint64_t offset = 0;  // from the beginning of the delegate's data, in bytes
  std::uint64_t size = 0;    // in bytes, without padding
  std::string key = {};      // of the named data that has the content; the part is that key then
};

/// A number or a text that a delegate's data says of itself.
struct PayloadFact {
  std::string name;  // "scratch_size", in bytes if it is a size
  std::variant<std::int64_t, std::string> value;
};

/// The data of a delegate.
struct DelegatePayload {
  std::string method;          // the first one that uses it
  std::uint32_t delegate = 0;  // the first delegate of that method that uses it
  std::string backend;         // its id: "EthosUBackend"
  ByteSource data;
  std::string format;  // "a stream of blocks (vela_bin_stream)"; empty if it is not known, or is damaged
  std::vector<PayloadPart> parts;  // as its header lists them
  std::vector<PayloadFact> facts;
  std::uint64_t keys = 0;  // how many keys of named data it asks for, as far as it is known
};

/// Reads what the delegates of all methods have, in file order: data that several share is listed once.
/// verify() tells what is wrong with damaged data, which has no parts here. Memory: that of the parts and the
/// facts. Time: in proportion to the metadata of the payloads. Errors: kCorrupt for what leads nowhere;
/// kTooLarge for data of delegates that share their bytes many times; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::vector<DelegatePayload>> read_delegate_payloads(
    const ProgramFile& program);

/// Returns the bytes of the part of this name, the first one if several have it. Error: kNotFound.
[[nodiscard]] ETSTREAM_EXPORT Result<ByteSource> part_of(const DelegatePayload& payload,
                                                         const std::string& name);

}  // namespace etstream
