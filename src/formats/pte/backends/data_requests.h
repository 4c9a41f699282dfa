// SPDX-License-Identifier: BSD-3-Clause
//
// The data that a program asks for by name when its methods are loaded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor_layout.h"
#include "formats/pte/program_model.h"

namespace etstream {

/// A request for an external tensor. ExecuTorch looks for it in tensor data files alone.
struct TensorRequest {
  std::string key;
  std::string asker;  // "method 'forward'"
  TensorLayout layout;
  bool is_planned = false;  // its bytes are copied to planned memory
  /// False if ExecuTorch 1.5.1 does not compare layouts: for a constant whose key an earlier one of the
  /// method has.
  bool is_compared = true;
};

/// A request for named data that a delegate takes, such as a constant of XNNPACK. ExecuTorch looks for it in
/// files, then in the program.
struct DelegateRequest {
  std::string key;
  std::string asker;                  // "method 'forward', delegate 0 (XnnpackBackend)"
  std::optional<std::uint64_t> size;  // the bytes that are read, where the delegate says it
  bool is_xnnpack = false;
};

struct DataRequests {
  std::vector<TensorRequest> tensors;
  std::vector<DelegateRequest> delegates;
  std::vector<ByteSource> others;  // the data of delegates that may hold keys too
  std::vector<Error> errors;       // of data that its backend can't load, which is among `others`
  std::map<std::string, ByteSource> named_data;  // what the program has itself, by key
};

/// Reads the requests of all methods. Data of delegates is read once, as far as read_backend_payload() does.
/// Errors: kCorrupt for what leads nowhere; kTooLarge for names over 1 MiB; kIo.
[[nodiscard]] Result<DataRequests> read_data_requests(const pte::Program& program);

/// Describes a delegate: "method 'forward', delegate 0 (XnnpackBackend)". `methods` are the names of the
/// program's methods.
[[nodiscard]] std::string describe(std::span<const std::string> methods, const DelegateReference& reference);

/// Adds the requests in the data of the delegate at `reference`. Errors: as above.
[[nodiscard]] Result<void> add_delegate_requests(const pte::Program& program,
                                                 const DelegateReference& reference, ByteSource data,
                                                 DataRequests& out);

/// Returns the keys that the program asks for and does not have, in order, each once.
[[nodiscard]] std::vector<std::string> external_keys(const DataRequests& requests);

}  // namespace etstream
