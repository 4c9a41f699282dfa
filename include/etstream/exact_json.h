// SPDX-License-Identifier: BSD-3-Clause
//
// ExactJson: flatbuffers of any schema as JSON that loses nothing, and back. Doubles and floats come back as
// they are, NaN and infinities too; bytes are base64, or are left where they lie. flatc's JSON, which
// FlatbufferText reads and writes, rounds numbers.
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
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

struct ExactJsonOptions {
  bool compact = false;   // without white space
  bool defaults = false;  // scalars that are not in the file too, with their default
  /// The file has the schema's identifier; false also takes others.
  bool identifier = true;
  /// The file begins with its size in 4 bytes, as ETDumps do.
  bool size_prefixed = false;
  /// Leaves out vectors of more bytes than that, and says where they lie in the file instead, by the name
  /// `file_name`.
  std::optional<std::uint64_t> leave_out_over = std::nullopt;
  std::string file_name = {};  // as the readers of the JSON will open the file; UTF-8
};

/// In what order a flatbuffer has its objects, which its bytes depend on.
enum class FlatbufferOrder {
  kFlatc,   // flatc's: of .ptd files, XNNPACK's graphs
  kPython,  // that of FlatBuffers' Python objects: of .pte and .bpte files
};

/// A value: cheap to copy. Every const function may be called from several threads at once.
class ETSTREAM_EXPORT ExactJson {
 public:
  /// Loads a schema: see FlatbufferText::open. Errors: kCorrupt, with file and line; kUnsupported for what
  /// came to FlatBuffers after 2.0; kTooLarge over 16 MiB; the file's own.
  [[nodiscard]] static Result<ExactJson> open(const std::string& schema,
                                              const std::vector<std::string>& include_folders = {});

  /// Appends to `sink`, and does not commit it. `file` is checked against the schema first; what is behind
  /// its flatbuffer is not looked at. An enum is its name, a string that is not UTF-8 {"base64": "..."}, a
  /// NaN "nan" or "nan:BITS", an infinity "inf" or "-inf". Memory: 16 bytes an object, and the longest
  /// string. Errors: kCorrupt with the offset; kInvalidArgument for a file_name that is not UTF-8; the
  /// sink's.
  [[nodiscard]] Result<void> decompile(const ByteSource& file, const ExactJsonOptions& options,
                                       Sink& sink) const;

  /// The plan of the flatbuffer that `json` describes. It also takes what flatc and ExecuTorch's serializers
  /// write. Vectors that are left out are read from {"file": PATH, "offset": N, "size": N} when the plan is
  /// written; paths are relative to `folder`. Memory: about that of the text. Errors: kInvalidArgument for
  /// what does not fit the schema, with file, line and where it is; kCorrupt for what is not JSON; kTooLarge
  /// over 2^31 - 1 bytes; those of opening files.
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
