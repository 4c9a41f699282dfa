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
#include "etstream/program_plan.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "etstream/tensor_data.h"
#include "formats/pte/rewrite/editable_program.h"

namespace etstream {

/// Tensor data to which entries are added. The data of a key never changes, as all that ask for the key get
/// it.
class ExternalData {
 public:
  /// Adds a buffer and returns its number. A buffer that gets no key is not written.
  [[nodiscard]] std::uint32_t add_buffer(ByteSource data);
  /// Adds `key` for a buffer, with the layout of the tensor that asks for it, or none for a delegate. Returns
  /// false if the key exists with another buffer or layout.
  [[nodiscard]] bool add(const std::string& key, std::uint32_t buffer,
                         const std::optional<TensorLayout>& layout);
  /// Returns the number of the buffer that has the key.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& key) const;

  [[nodiscard]] const TensorData& data() const noexcept { return data_; }
  [[nodiscard]] TensorData take() && { return std::move(data_); }

 private:
  TensorData data_;
  std::map<std::string, std::size_t> entries_;  // by key
};

/// Returns the ending for a key that tensors of several layouts would share: ":float32[2, 3]".
[[nodiscard]] std::string key_suffix(const TensorLayout& layout);

/// Returns the key of data that has no name, 64 hexadecimal digits. Errors: those of reading.
[[nodiscard]] Result<std::string> sha256_of(const ByteSource& source);

/// The tensors and the named data whose data leaves a program.
struct ExternalUses {
  struct Tensor {
    std::size_t index = 0;  // in EditableProgram::tensors, of a constant
    std::string key;
    std::uint32_t buffer = 0;  // the key's, as ExecuTorch's emitter notes it
  };
  std::vector<Tensor> tensors;
  std::set<std::string> named_data;  // keys
};

/// Removes the data in `uses` from the program, whose constants are split if `uses` has tensors.
void make_external(EditableProgram& editable, const ExternalUses& uses);

/// Takes all constants and named data out of the program. Errors: kInvalidArgument for a key that two would
/// have, and if there are none; kNotFound for a key of no constant; kCorrupt for a constant that is not
/// inside its segment; those of reading.
[[nodiscard]] Result<TensorData> move_constants_out(EditableProgram& editable, const ConstantsOut& options);

/// Takes external tensors, and all data without a layout, in from these files. A tensor keeps its name,
/// unless that is the SHA-256 of its data. Errors: kInvalidArgument for data that two of the files have, or
/// that has another layout than the tensor, and for a file of which nothing is taken; kCorrupt, kIo.
[[nodiscard]] Result<void> move_constants_in(EditableProgram& editable,
                                             const std::vector<const TensorDataFile*>& files);

}  // namespace etstream
