// SPDX-License-Identifier: BSD-3-Clause
//
// Messages for people, put together from pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "etstream/result.h"

namespace etstream {

/// One string from strings and numbers: `text("at offset ", 8, " of ", path)`.
template <class... Pieces>
[[nodiscard]] std::string text(const Pieces&... pieces) {
  std::string out;
  const auto append = [&out](const auto& piece) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(piece)>>) {
      out += std::to_string(piece);
    } else {
      out += std::string_view(piece);
    }
  };
  (append(pieces), ...);
  return out;
}

template <class... Pieces>
[[nodiscard]] Error make_error(ErrorCode code, const Pieces&... pieces) {
  return Error{code, text(pieces...)};
}

/// `words` with control characters, and bytes that are not UTF-8, as \xNN, cut after 200 bytes: what came
/// from a file can't garble a terminal.
[[nodiscard]] std::string printable(std::string_view words);

[[nodiscard]] bool is_utf8(std::string_view words);

/// What printable() gives, in single quotes.
[[nodiscard]] std::string quote(std::string_view word);

/// The shortest decimal that reads back as `number`: "0.25", "1e-07", "inf".
[[nodiscard]] std::string exact_text(double number);

/// "1 test case", "2 test cases": for counts in messages.
[[nodiscard]] std::string counted(std::uint64_t n, std::string_view noun);

/// A size as people read it, exact where it is small: "812 bytes", "98.3 MiB".
[[nodiscard]] std::string readable_size(std::uint64_t bytes);

}  // namespace etstream
