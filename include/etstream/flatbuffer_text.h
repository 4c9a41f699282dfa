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
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/export.h"
#include "etstream/result.h"

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

  /// Returns the text that `flatc --json` writes for `flatbuffer`, which may be any bytes: all of it is
  /// checked against the schema first. Like flatc's, the text is lossy: a float has 6 digits after the
  /// decimal point, a double 12, and nan and inf are written as such. Memory: the flatbuffer, the text, and
  /// 16 bytes per object. Errors: kCorrupt with the offset; kUnsupported for a schema with nested_flatbuffer
  /// or flexbuffer, or without the identifier that the options require.
  [[nodiscard]] Result<std::string> decompile(std::span<const std::byte> flatbuffer,
                                              const DecompileOptions& options = {},
                                              const std::string& name = "the flatbuffer") const;

  /// Returns the schema's path, as it was given.
  [[nodiscard]] const std::string& path() const noexcept;

  /// Returns the schema's file_extension, without a dot; "bin" if it has none.
  [[nodiscard]] const std::string& file_extension() const noexcept;

 private:
  struct State;
  explicit FlatbufferText(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace etstream
