// SPDX-License-Identifier: BSD-3-Clause
//
// FlatbufferText: converts JSON to flatbuffers and flatbuffers to JSON as flatc does, without a process per
// file. A schema is loaded once for any number of calls.
//
//   auto flat_tensor = etstream::FlatbufferText::open("flat_tensor.fbs", {"include"});
//   if (!flat_tensor) return flat_tensor.error();
//   auto metadata = flat_tensor->compile(R"({"version": 1, "segments": []})", "metadata.json");
//   if (!metadata) return metadata.error();
//   auto text = flat_tensor->decompile(*metadata, {.identifier = false}, "metadata.ptd");
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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// The longest JSON that compile() accepts, in bytes.
inline constexpr std::uint64_t kLargestJson = std::uint64_t{256} << 20;

/// Options of FlatbufferText::decompile().
struct DecompileOptions {
  /// Writes names in quotes (flatc --strict-json).
  bool strict_json = true;
  /// Also writes scalars that are not in the file, with their defaults (flatc --defaults-json).
  bool defaults = true;
  /// Requires the schema's identifier; false accepts any (flatc --raw-binary).
  bool identifier = true;
  /// The file begins with its size in 4 bytes, as ETDumps do (flatc --size-prefixed).
  bool size_prefixed = false;
};

/// A value: cheap to copy, and copies share the loaded schema. Every const function may be called from
/// several threads at once; each call that runs uses a parser of its own, about 100 bytes per word of the
/// schema, which later calls reuse.
class ETSTREAM_EXPORT FlatbufferText {
 public:
  /// Loads a schema: a .fbs file, which may include others in the same folder or in `include_folders`, or a
  /// .bfbs file. Errors: kCorrupt, with file and line; kUnsupported (no root_type; a default over 2^63 - 1; a
  /// struct with force_align over 32; a vector with one over 32 next to nested_flatbuffer); kTooLarge over 16
  /// MiB; errors reading the file.
  [[nodiscard]] static Result<FlatbufferText> open(const std::string& schema,
                                                   const std::vector<std::string>& include_folders = {});

  /// Builds the flatbuffer that `json` describes, byte for byte as `flatc --binary` does: children in the
  /// order of the JSON, fields by size. Accepts what flatc accepts: comments, names without quotes, enums by
  /// name. `name` stands for the JSON in messages. Memory: about 100 bytes per value. Errors: kCorrupt for
  /// what does not fit the schema, or is nested deeper than 64, with the line; kTooLarge over kLargestJson,
  /// or if the flatbuffer would have 2 GiB.
  [[nodiscard]] Result<std::vector<std::byte>> compile(std::string_view json,
                                                       const std::string& name = "the JSON") const;
  /// Does the same for a file. Errors: those of reading it too.
  [[nodiscard]] Result<std::vector<std::byte>> compile(const ByteSource& json) const;

  /// Returns the text that `flatc --json` writes for `flatbuffer`, which may be any bytes: all of it is
  /// checked against the schema first. Like flatc's, the text is lossy: a float has 6 digits after the
  /// decimal point, a double 12, and nan and inf are written as such. Memory: the flatbuffer, the text, and
  /// 16 bytes per object. Errors: kCorrupt with the offset; kUnsupported for a schema with nested_flatbuffer
  /// or flexbuffer, or without the identifier that the options require.
  [[nodiscard]] Result<std::string> decompile(std::span<const std::byte> flatbuffer,
                                              const DecompileOptions& options = {},
                                              const std::string& name = "the flatbuffer") const;
  /// Does the same for a file. Errors: those of reading it too; kTooLarge over 2 GiB.
  [[nodiscard]] Result<std::string> decompile(const ByteSource& flatbuffer,
                                              const DecompileOptions& options = {}) const;

  /// Returns the schema's path, as it was given.
  [[nodiscard]] const std::string& path() const noexcept;

  /// Returns the schema's file_extension, without a dot; "bin" if it has none.
  [[nodiscard]] const std::string& file_extension() const noexcept;

 private:
  struct State;
  explicit FlatbufferText(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

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
