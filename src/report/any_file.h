// SPDX-License-Identifier: BSD-3-Clause
//
// AnyFile: an open file of any kind that etstream knows. What reports say of each kind is a visit of it,
// which does not compile while a kind is left out.
//
//   ETSTREAM_ASSIGN(const AnyFile file, open_any(source));
//   visit_file(file, [](const ProgramFile& program) { ... }, [](const TensorDataFile& weights) { ... }, ...);
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "etstream/bundled_program_file.h"
#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/program.h"
#include "etstream/result.h"
#include "etstream/tensor_data_file.h"
#include "weights/checkpoint_file.h"

namespace etstream {

using AnyFile = std::variant<ProgramFile, BundledProgramFile, TensorDataFile, CheckpointFile>;

/// Functions as one that takes what any of them does.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

template <std::size_t kFirst, class Visitor>
decltype(auto) visit_from(const AnyFile& file, const Visitor& visitor) {
  if constexpr (kFirst + 1 == std::variant_size_v<AnyFile>) {
    return visitor(*std::get_if<kFirst>(&file));
  } else {
    if (const auto* const held = std::get_if<kFirst>(&file)) return visitor(*held);
    return visit_from<kFirst + 1>(file, visitor);
  }
}

/// What the function gives that takes what `file` holds; all give the same type. It throws nothing of its
/// own, as std::visit may.
template <class... Functions>
decltype(auto) visit_file(const AnyFile& file, Functions... functions) {
  return visit_from<0>(file, Overloaded<Functions...>{std::move(functions)...});
}

/// Opens a file by how it begins. Errors: those of file_kind() and of opening that kind.
[[nodiscard]] Result<AnyFile> open_any(const ByteSource& file);

[[nodiscard]] FileKind kind_of(const AnyFile& file) noexcept;
[[nodiscard]] const ByteSource& source_of(const AnyFile& file) noexcept;

}  // namespace etstream
