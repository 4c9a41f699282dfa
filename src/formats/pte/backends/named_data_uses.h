// SPDX-License-Identifier: BSD-3-Clause
//
// The delegates of a program that take named data, and their purposes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_layout.h"
#include "formats/pte/backends/xnnpack_uses.h"

namespace etstream {

/// Named data as a delegate asks for it.
struct NamedDataUse {
  std::string key;
  std::optional<std::uint64_t> size = {};  // in bytes, where the delegate says it
  std::string use = {};  // "filter of XNNFullyConnected 3"; empty where it does not say that
  std::optional<TensorLayout> layout = {};
  bool is_of_nibbles = false;  // two elements a byte
};

/// The keys that a delegate asks for, in its order.
struct DelegateUses {
  std::uint32_t method = 0;    // its number
  std::uint32_t delegate = 0;  // an index in the method's delegates
  bool in_segment = false;     // where its data is; otherwise in the flatbuffer
  std::uint32_t index = 0;     // of the segment, or of the entry in the flatbuffer
  std::string asker;           // "method 'forward', delegate 0 (XnnpackBackend)"
  /// Its data, without the characters of the keys if these are known.
  ByteSource without_keys;
  std::vector<NamedDataUse> uses;
};

/// Reads the requests of the delegates of all methods, as far as their backends are known. Data that several
/// share is read once, for the first. Damaged data requests nothing. Memory: that of the keys, and 200 bytes
/// a request. Errors: kTooLarge for data of delegates that share their bytes many times; kIo.
[[nodiscard]] Result<std::vector<DelegateUses>> read_named_data_uses(const ProgramFile& program);

}  // namespace etstream
