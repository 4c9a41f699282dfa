// SPDX-License-Identifier: BSD-3-Clause
//
// ParserPool: FlatBuffers' parsers of one schema. A parser keeps a state, so each serves one call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "etstream/result.h"

namespace flatbuffers {
class Parser;
}

namespace etstream {

/// What FlatBuffers 2.0.8 takes as force_align.
inline constexpr std::uint32_t kLargestParserAlignment = 32;

/// May be used by several threads at once.
class ParserPool {
 public:
  /// `binary_schema` is one that Schema::from_binary takes. Errors: kCorrupt, kUnsupported for what its
  /// parser does not take. `path` is what messages call it.
  [[nodiscard]] static Result<std::unique_ptr<ParserPool>> open(std::vector<std::byte> binary_schema,
                                                                const std::string& path);
  ParserPool(const ParserPool&) = delete;
  ParserPool& operator=(const ParserPool&) = delete;
  ~ParserPool();

  /// A parser that has parsed nothing but the schema, or other JSON without an error. Its vectors have no
  /// force_align over kLargestParserAlignment.
  [[nodiscard]] Result<std::unique_ptr<flatbuffers::Parser>> take() const;
  /// Keeps a parser for the next call. One that has failed must not be given back: its state is left over.
  void give_back(std::unique_ptr<flatbuffers::Parser> parser) const;

  /// A field with nested_flatbuffer or flexbuffer, "TABLE.FIELD"; empty where there is none.
  [[nodiscard]] const std::string& nested_field() const noexcept { return nested_field_; }

 private:
  ParserPool(std::vector<std::byte> binary_schema, std::string path);

  Result<std::unique_ptr<flatbuffers::Parser>> make_parser() const;

  const std::vector<std::byte> binary_schema_;
  const std::string path_;
  std::string nested_field_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<flatbuffers::Parser>> idle_;
};

}  // namespace etstream
