// SPDX-License-Identifier: BSD-3-Clause
//
// ExactJson: converts flatbuffers of any schema to JSON without loss, and back. Doubles and floats keep their
// value, NaN and infinities too; bytes become base64, or stay in the file. flatc's JSON, which FlatbufferText
// reads and writes, rounds numbers.
//
//   auto program = etstream::ExactJson::open("program.fbs");
//   if (!program) return program.error();
//   const auto file = etstream::ByteSource::file("model.pte").value();
//   const auto sink = etstream::open_file_sink("model.json").value();
//   if (const auto shown = program->decompile(file, {}, *sink); !shown) return shown.error();
//   if (const auto done = sink->commit(); !done) return done.error();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/file_plan.h"
#include "etstream/findings.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// Options of ExactJson::decompile().
struct ExactJsonOptions {
  bool compact = false;   // without white space
  bool defaults = false;  // also writes scalars that are not in the file, with their default
  /// Requires the schema's identifier; false accepts any.
  bool identifier = true;
  /// The file begins with its size in 4 bytes, as ETDumps do.
  bool size_prefixed = false;
  /// Leaves out vectors of more bytes than this, and writes where they are in the file instead, under the
  /// name `file_name`.
  std::optional<std::uint64_t> leave_out_over = std::nullopt;
  std::string file_name = {};  // by which readers of the JSON open the file; UTF-8
  Warn warn = {};              // of what is behind the flatbuffer in the file, which the JSON lacks
};

/// The order of a flatbuffer's objects, which its bytes depend on.
enum class FlatbufferOrder {
  kFlatc,   // flatc's order, as in .ptd files and XNNPACK's graphs
  kPython,  // the order of FlatBuffers' Python objects, as in .pte and .bpte files
};

/// A value: cheap to copy. Every const function may be called from several threads at once.
class ETSTREAM_EXPORT ExactJson {
 public:
  /// Loads a schema: see FlatbufferText::open. Errors: kCorrupt, with file and line; kUnsupported for
  /// features added to FlatBuffers after 2.0; kTooLarge over 16 MiB; errors reading the file.
  [[nodiscard]] static Result<ExactJson> open(const std::string& schema,
                                              const std::vector<std::string>& include_folders = {});

  /// Appends the JSON to `sink` and does not commit it. Checks `file` against the schema first, and warns
  /// of what follows its flatbuffer, such as the segments of a program. An enum is written as its name, a
  /// string that is not UTF-8 as {"base64":
  /// "..."}, a NaN as "nan" or "nan:BITS", an infinity as "inf" or "-inf"; deprecated fields are written as
  /// others. Memory: 16 bytes per object, and
  /// the longest string. Errors: kCorrupt with the offset, also for a value in a union of no type;
  /// kUnsupported for a field that the schema lacks; kInvalidArgument for a file_name that is not UTF-8; the
  /// sink's.
  [[nodiscard]] Result<void> decompile(const ByteSource& file, const ExactJsonOptions& options,
                                       Sink& sink) const;

  /// Plans the flatbuffer that `json` describes. Scalars that equal their default are left out, as flatc
  /// leaves them out. Also accepts what flatc and ExecuTorch's serializers write. Vectors that are left out
  /// are given as {"file": PATH, "offset": N, "size": N} and read when the plan is written; paths are
  /// relative to `folder`. Memory: about the size of the text. Errors: kInvalidArgument for what does not fit
  /// the schema, with file, line and the place in the JSON; kCorrupt for invalid JSON; kTooLarge over 2^31 -
  /// 1 bytes; errors opening files.
  [[nodiscard]] Result<FilePlan> compile(const ByteSource& json, const std::string& folder,
                                         FlatbufferOrder order = FlatbufferOrder::kFlatc) const;

  /// See FlatbufferText::file_extension.
  [[nodiscard]] const std::string& file_extension() const noexcept;

 private:
  struct State;
  explicit ExactJson(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace etstream
