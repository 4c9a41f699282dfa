// SPDX-License-Identifier: BSD-3-Clause
//
// How values are spelled in JSON so that they read back as they were, and JsonText, which lays them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/result.h"
#include "etstream/sink.h"

namespace etstream {

/// In double quotes; none if it is not UTF-8.
[[nodiscard]] std::optional<std::string> json_string(std::string_view string);

/// A finite number, as short as reads back as the same and not as an integer.
[[nodiscard]] std::string json_number(double value);

/// A float's or double's bits: a number, or one of the strings "nan", "inf", "-inf", and "nan:BITS" for other
/// NaNs than the usual one, BITS in hexadecimal. `width` is 4 or 8, in bytes.
[[nodiscard]] std::string json_float(std::uint64_t bits, unsigned width);
/// The bits of what those strings spell.
[[nodiscard]] std::optional<std::uint64_t> parse_special_float(std::string_view string, unsigned width);

/// Appends to a sink, in pieces of some 64 KiB. Memory: that, and the longest value.
class JsonText {
 public:
  /// With `compact`, no white space; otherwise 2 spaces a level. `sink` outlives the text.
  JsonText(Sink& sink, bool compact) : sink_(sink), compact_(compact) {}

  /// '{' or '['. What is in it stands on one line, or each on its own.
  void begin(char bracket, bool on_one_line = false);
  void end(char bracket);
  /// `name` needs no escapes.
  void key(std::string_view name);
  /// Is spelled as JSON.
  void value(std::string_view spelled);
  /// To append to a value.
  [[nodiscard]] std::string& buffer() noexcept { return buffer_; }

  /// To be called between values. Error: the sink's.
  Result<void> pass_on();
  /// Ends the text.
  Result<void> finish();

 private:
  struct Level {
    bool on_one_line = false;
    bool is_empty = true;
  };
  void separate();
  void new_line();
  Result<void> flush();

  Sink& sink_;
  const bool compact_;
  std::vector<Level> levels_;  // that are open
  bool after_key_ = false;
  std::string buffer_;
};

}  // namespace etstream
