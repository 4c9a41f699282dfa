// SPDX-License-Identifier: BSD-3-Clause
//
// The ExecuTorch program (.pte, identifier ET12), read where it lies.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   for (const auto& method : program->methods().value()) std::puts(method.name.c_str());
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/program_schema.h"
#include "etstream/result.h"
#include "etstream/scalar_type.h"
#include "etstream/segment_info.h"

namespace etstream {
namespace pte {
class ETSTREAM_HIDDEN Program;
}

/// Whether a tensor's sizes are exact, upper bounds, or say nothing.
enum class ShapeDynamism : std::int8_t { kStatic = 0, kDynamicBound = 1, kDynamicUnbound = 2 };

struct TensorInfo {
  ScalarType scalar_type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> dim_order;  // the dimensions, outermost first
  ShapeDynamism dynamism = ShapeDynamism::kStatic;
};

/// A kind of value that no test case can hold: "Null", "String", "TensorList"...
struct OtherInfo {
  std::string kind;
};

/// What a method takes or gives. A scalar stands for the value that the method was exported with.
using ValueInfo = std::variant<TensorInfo, std::int64_t, bool, double, OtherInfo>;

struct MethodInfo {
  std::string name;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

/// An open program. Holds at most 512 KiB of it in memory, whatever its size; and, once they are asked for,
/// its segments() and the names of its methods. All functions may be called from several threads at once.
/// Errors: kCorrupt, naming file, offset, expected and found; kIo.
class ETSTREAM_EXPORT ProgramFile {
 public:
  /// Reads all metadata and checks its structure: every table, vector and string, and the zeros between
  /// them. `file` is all of the program and nothing else; `name` is what messages call it, by default what
  /// they call the file. What `schema` does not have of it is not seen. Memory while it does: 16 bytes an
  /// object.
  [[nodiscard]] static Result<ProgramFile> open(ByteSource file, std::string name = {},
                                                const ProgramSchema& schema = {});

  ProgramFile(ProgramFile&&) noexcept;
  ProgramFile& operator=(ProgramFile&&) noexcept;
  ~ProgramFile();

  [[nodiscard]] const ByteSource& file() const noexcept;
  /// The bytes that are the flatbuffer, from the start of the file on, extended header included.
  [[nodiscard]] std::uint64_t flatbuffer_size() const noexcept;
  /// The extended header's length at offset 8; 0 where there is none, and so no segments.
  [[nodiscard]] std::uint32_t extended_header_size() const noexcept;
  /// Where the extended header says that segments begin and how many bytes they are.
  [[nodiscard]] std::uint64_t segment_base_offset() const noexcept;
  [[nodiscard]] std::uint64_t segment_data_size() const noexcept;

  [[nodiscard]] Result<std::uint32_t> version() const;
  [[nodiscard]] Result<std::vector<MethodInfo>> methods() const;
  [[nodiscard]] Result<std::vector<SegmentInfo>> segments() const;
  /// The alignment that the program was written with, up to 64 KiB, as far as its segments show it: they lie
  /// at multiples of it.
  [[nodiscard]] Result<std::uint64_t> segment_alignment() const;

  /// Checks what open() does not: that indices are in range, that segments are inside the file, apart from
  /// each other and aligned, with zeros between them. What is wrong is added to `findings`; what can't be
  /// followed ends the check. Error: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;
  /// Of a program that verify() found no error in: checks that the kernels and delegates of ExecuTorch 1.5.1
  /// take what each call gives them, as far as they are known; those that are not are counted. Errors are
  /// what ends ExecuTorch's process, or what it refuses. Such a program can be read and written again
  /// nevertheless. Error: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify_calls(Findings& findings) const;

  /// The library's own form of it.
  [[nodiscard]] const pte::Program& model() const noexcept { return *model_; }

 private:
  explicit ProgramFile(std::unique_ptr<const pte::Program> model);
  std::unique_ptr<const pte::Program> model_;
};

}  // namespace etstream
