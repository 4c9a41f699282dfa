// SPDX-License-Identifier: BSD-3-Clause
//
// JSON as a stream of events: never a document in memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

struct JsonEvent {
  enum class Kind {
    kNull,
    kBool,
    kInteger,   // a number without point or exponent; fits 64 bits signed
    kUnsigned,  // one that only fits 64 bits unsigned
    kDouble,    // any other number
    kString,
    kKey,
    kObject,  // begins
    kEndObject,
    kArray,  // begins
    kEndArray,
  };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;
  std::uint64_t large = 0;  // of kUnsigned
  double number = 0;
  std::string_view string = {};  // of kString and kKey, UTF-8; valid during the call
};

/// Returns what messages call an event: "a string", "the end of the array".
[[nodiscard]] std::string_view name_of(JsonEvent::Kind kind) noexcept;

class JsonHandler {
 public:
  JsonHandler() = default;
  JsonHandler(const JsonHandler&) = delete;
  JsonHandler& operator=(const JsonHandler&) = delete;
  virtual ~JsonHandler() = default;

  /// Takes the next event; an error ends the parsing. Events come well nested, keys only in objects.
  [[nodiscard]] virtual Result<void> on(const JsonEvent& event) = 0;
};

inline constexpr int kDeepestJson = 64;

enum class JsonSyntax {
  kStandard,  // RFC 8259
  kFlatc,     // also words without quotes, which come as strings: flatc writes keys so, and -inf and nan
};

/// Parses all of `source`. Memory: 64 KiB and the longest string. Errors: the handler's, with the file's
/// name and the line put before them; kCorrupt for what is not JSON (RFC 8259, valid UTF-8), nesting
/// deeper than `deepest`, a string, a number or white space longer than 16 MiB, and integers over 64 bits;
/// the source's own.
[[nodiscard]] Result<void> parse_json(const ByteSource& source, JsonHandler& handler,
                                      int deepest = kDeepestJson, JsonSyntax syntax = JsonSyntax::kStandard);

}  // namespace etstream
