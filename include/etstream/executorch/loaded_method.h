// SPDX-License-Identifier: BSD-3-Clause
//
// A method of a loaded program, with its planned memory.
//
//   const auto model = etstream::ByteSource::file("model.pte").value();
//   const auto loader = etstream::open_mapped_program_loader(model).value();
//   const auto program = executorch::runtime::Program::load(loader.get());
//   if (!program.ok()) return etstream::Error{etstream::ErrorCode::kCorrupt, "model.pte"};
//   auto forward = etstream::LoadedMethod::load(*program, "forward", nullptr, model);
//   if (!forward) return forward.error();
//   const std::size_t inputs = forward->method().inputs_size();
#pragma once

#include <executorch/runtime/executor/program.h>

#include <memory>
#include <string>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Owns the method's planned memory, on the heap. One thread at a time may use it. When loading fails,
/// ExecuTorch's log has more details than the error.
class ETSTREAM_EXPORT LoadedMethod {
 public:
  /// Sets up the method and its delegates. `program` and its loader must outlive it, and so must
  /// `named_data`, the weights of a .ptd file if the program uses one. `file`, all of the program, lets an
  /// error name the operators, the backends and the keys that are missing; see refusal.h. Errors: kNotFound
  /// for no such method; kUnsupported for operators or backends that are not linked, for keys that are in no
  /// file, and for memory planned on another device than the CPU; kCorrupt for what ExecuTorch finds invalid;
  /// kOutOfMemory.
  [[nodiscard]] static Result<LoadedMethod> load(
      const executorch::runtime::Program& program, const std::string& name,
      const executorch::runtime::NamedDataMap* named_data = nullptr, const ByteSource& file = {});

  LoadedMethod(LoadedMethod&&) noexcept;
  LoadedMethod& operator=(LoadedMethod&&) noexcept;
  ~LoadedMethod();

  /// Returns the method, which lives as long as this object.
  [[nodiscard]] executorch::runtime::Method& method() noexcept;

 private:
  struct ETSTREAM_HIDDEN Impl;
  explicit LoadedMethod(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace etstream
