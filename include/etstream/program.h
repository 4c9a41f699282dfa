// SPDX-License-Identifier: BSD-3-Clause
//
// Reads an ExecuTorch program (.pte, identifier ET12) in place.
//
//   auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   for (const auto& method : program->methods().value()) std::puts(method.name.c_str());
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

/// The meaning of a tensor's sizes: exact, upper bounds, or no bounds.
enum class ShapeDynamism : std::int8_t { kStatic = 0, kDynamicBound = 1, kDynamicUnbound = 2 };

/// The place of a tensor's bytes.
enum class TensorStorage {
  kNone,      // not a tensor
  kProvided,  // by the method's caller: an input that is not planned, an output without a bound
  kPlanned,   // in the memory that the program was planned with
  kConstant,  // in the program
  kMutable,   // in planned memory, initialized from bytes in the program
  kExternal,  // in another file, under the tensor's name
};

/// Returns the name: "planned", "constant"...; "" for kNone.
[[nodiscard]] ETSTREAM_EXPORT std::string_view name_of(TensorStorage storage) noexcept;

/// The kind of an instruction.
enum class CallKind { kKernel, kDelegate, kMove, kJumpIfFalse, kFree };

/// The type and the shape of a tensor, and how fixed the shape is.
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

/// An input or output of a method. A scalar is the value that the method was exported with.
using ValueInfo = std::variant<TensorInfo, std::int64_t, bool, double, OtherInfo>;

/// The signature of a method.
struct MethodInfo {
  std::string name;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

/// An open program. Whatever its size, it holds at most 512 KiB of the file in memory, and, once they are
/// requested, its segments() and the names of its methods. All functions may be called from several threads
/// at once. Errors: kCorrupt, naming file, offset, expected and found; kIo.
class ETSTREAM_EXPORT ProgramFile {
 public:
  /// Reads all metadata and checks its structure: every table, vector and string, and the zeros between them.
  /// `file` contains the program and nothing else; `name` stands for it in messages, by default the file's
  /// name. Tables and fields that `schema` lacks are ignored. Memory during the check: 16 bytes per object.
  [[nodiscard]] static Result<ProgramFile> open(ByteSource file, std::string name = {},
                                                const ProgramSchema& schema = {});

  ProgramFile(ProgramFile&&) noexcept;
  ProgramFile& operator=(ProgramFile&&) noexcept;
  ~ProgramFile();

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept;
  /// Returns the size of the flatbuffer, which is at the start of the file and includes the extended header.
  [[nodiscard]] std::uint64_t flatbuffer_size() const noexcept;

  /// Returns the version of the program's schema.
  [[nodiscard]] Result<std::uint32_t> version() const;
  /// Returns the methods in the order of the program.
  [[nodiscard]] Result<std::vector<MethodInfo>> methods() const;
  /// Returns the segments by index, with offsets from the start of the file.
  [[nodiscard]] Result<std::vector<SegmentInfo>> segments() const;
  /// Returns the alignment that the program was written with, up to 64 KiB, as far as the offsets of its
  /// segments show it.
  [[nodiscard]] Result<std::uint64_t> segment_alignment() const;

  /// Checks what open() does not: that indices are in range; that segments are inside the file, disjoint and
  /// aligned, with zeros between them. Adds the problems to `findings`; a reference that can't be followed
  /// ends the check. Errors: kIo, kOutOfMemory.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

  /// Returns the library's internal representation.
  [[nodiscard]] const pte::Program& model() const noexcept { return *model_; }

 private:
  explicit ProgramFile(std::unique_ptr<const pte::Program> model);
  std::unique_ptr<const pte::Program> model_;
};

}  // namespace etstream
