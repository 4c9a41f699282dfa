// SPDX-License-Identifier: BSD-3-Clause
//
// JSON among the files that a command takes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/try.h"
#include "container/foreign_file.h"
#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/result.h"

namespace etstream {

/// Whether a file begins as an object in JSON does, and is of no binary format: the length or the offset that
/// those begin with may spell white space and a brace too. Errors: those of refuse_foreign().
[[nodiscard]] inline Result<bool> begins_json_object(const ByteSource& file) {
  ETSTREAM_TRY(refuse_foreign(file));
  std::array<char, 64> begin{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), file.size()));
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(begin)).first(n)));
  const std::string_view bytes(begin.data(), n);
  const auto first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{' && !file_kind(file).has_value();
}

}  // namespace etstream
