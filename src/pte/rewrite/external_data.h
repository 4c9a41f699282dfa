// SPDX-License-Identifier: BSD-3-Clause
//
// Data that leaves programs: the file of tensor data that it goes to, and the program without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
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

}  // namespace etstream
