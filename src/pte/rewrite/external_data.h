// SPDX-License-Identifier: BSD-3-Clause
//
// Data that leaves programs for a file of tensor data, and data that comes in from one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/program_changes.h"
#include "etstream/result.h"
#include "etstream/tensor_data.h"
#include "etstream/tensor_layout.h"
#include "pte/rewrite/editable_program.h"

namespace etstream {

/// Tensor data as it comes together. A key gives one and the same data whoever asks for it, so it is never
/// changed once it is there.
class ExternalData {
 public:
  /// The number of a buffer with this data; one that no key is added for is not written.
  [[nodiscard]] std::uint32_t add_buffer(ByteSource data);
  /// Has `key` give the buffer to a tensor of that layout, or to a delegate, which asks for none. False where
  /// it gives another buffer, or to tensors of another layout.
  [[nodiscard]] bool add(const std::string& key, std::uint32_t buffer,
                         const std::optional<TensorLayout>& layout);
  /// The buffer that the key gives.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& key) const;

  [[nodiscard]] const TensorData& data() const noexcept { return data_; }
  [[nodiscard]] TensorData take() && { return std::move(data_); }

 private:
  TensorData data_;
  std::map<std::string, std::size_t> entries_;  // by key
};

/// What follows a key that tensors of several layouts share: ":float32[2, 3]".
[[nodiscard]] std::string key_suffix(const TensorLayout& layout);

/// As 64 hexadecimal digits: the key of data that has no name. Errors: those of reading.
[[nodiscard]] Result<std::string> sha256_of(const ByteSource& source);

/// What a program asks tensor data for instead of having it.
struct ExternalUses {
  struct Tensor {
    std::size_t index = 0;  // in EditableProgram::tensors, of a constant
    std::string key;
    std::uint32_t buffer = 0;  // the key's, as ExecuTorch's emitter notes it
  };
  std::vector<Tensor> tensors;
  std::set<std::string> named_data;  // keys
};

/// Takes what `uses` says out of the program, whose constants are split where one of them goes.
void make_external(EditableProgram& editable, const ExternalUses& uses);

/// Takes all constants and named data out of the program. Errors: kInvalidArgument for a key that two would
/// have, and where there are none; kCorrupt for a constant that is not inside its segment; those of reading.
[[nodiscard]] Result<TensorData> move_constants_out(EditableProgram& editable, const ConstantsOut& options);

/// Takes external tensors, and all data without a layout, in from these files. A tensor keeps its name,
/// unless that is the SHA-256 of its data. Errors: kInvalidArgument for data that comes from two of the
/// files, or that has another layout than the tensor; kCorrupt, kIo.
[[nodiscard]] Result<void> move_constants_in(EditableProgram& editable,
                                             const std::vector<const TensorDataFile*>& files);

}  // namespace etstream
