// SPDX-License-Identifier: BSD-3-Clause
//
// FlatbufferText: flatbuffers from JSON and JSON from flatbuffers, as flatc makes them, without a process a
// file. A schema is loaded once and then serves any number of calls.
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

/// The longest JSON that compile() takes, in bytes.
inline constexpr std::uint64_t kLargestJson = std::uint64_t{256} << 20;

struct DecompileOptions {
  /// Names in quotes (flatc --strict-json).
  bool strict_json = true;
  /// Scalars that are not in the file, with their defaults (flatc --defaults-json).
  bool defaults = true;
  /// The file has the schema's identifier; false also takes others (flatc --raw-binary).
  bool identifier = true;
  /// The file begins with its size in 4 bytes, as ETDumps do (flatc --size-prefixed).
  bool size_prefixed = false;
};

/// A value: cheap to copy, the copies share what is loaded. Every const function may be called from several
/// threads at once; each thread that is in one takes a parser of its own, about 100 bytes for each word of
/// the schema, which serves later calls.
class ETSTREAM_EXPORT FlatbufferText {
 public:
  /// Loads a schema: a .fbs file, which may include others that are next to it or in `include_folders`, or a
  /// .bfbs file. Errors: kCorrupt, with file and line; kUnsupported (no root_type; a default over 2^63 - 1; a
  /// struct with force_align over 32; a vector with one over 32 next to nested_flatbuffer); kTooLarge over 16
  /// MiB; the file's own.
  [[nodiscard]] static Result<FlatbufferText> open(const std::string& schema,
                                                   const std::vector<std::string>& include_folders = {});

  /// The flatbuffer that `json` describes, byte for byte that of `flatc --binary`: children in the order of
  /// the JSON, fields by size. It takes what flatc takes: comments, names without quotes, enums by name.
  /// `name` is what messages call the JSON. Memory: some 100 bytes a value. Errors: kCorrupt for what does
  /// not fit the schema, or is nested deeper than 64, with the line; kTooLarge over kLargestJson, or if the
  /// flatbuffer would have 2 GiB.
  [[nodiscard]] Result<std::vector<std::byte>> compile(std::string_view json,
                                                       const std::string& name = "the JSON") const;

  /// The text that `flatc --json` gives for `flatbuffer`. All of it is checked against the schema first, so
  /// that any bytes can be given. As flatc's, the text is lossy: a float has 6 digits behind the point, a
  /// double 12, and nan and inf are written as such. Memory: the flatbuffer, the text, and 16 bytes an
  /// object. Errors: kCorrupt with the offset; kUnsupported for a schema with nested_flatbuffer or
  /// flexbuffer, or without an identifier to look for.
  [[nodiscard]] Result<std::string> decompile(std::span<const std::byte> flatbuffer,
                                              const DecompileOptions& options = {},
                                              const std::string& name = "the flatbuffer") const;

  /// The file_extension that the schema gives to flatbuffers, without a point; "bin" where it gives none.
  [[nodiscard]] const std::string& file_extension() const noexcept;

 private:
  struct State;
  explicit FlatbufferText(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace etstream
