// SPDX-License-Identifier: BSD-3-Clause
//
// Many small files as sources.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "test_files.h"

namespace etstream {

/// Makes files of different bytes, and returns sources of them.
inline std::vector<ByteSource> open_files(const TemporaryFolder& folder, const std::string& prefix,
                                          std::size_t count) {
  std::vector<ByteSource> sources;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = prefix + std::to_string(i);
    put_file(folder / name, "content of " + name);
    auto source = ByteSource::file(folder / name);
    REQUIRE_MESSAGE(source, source.error().message);
    sources.push_back(std::move(source).value());
  }
  return sources;
}

}  // namespace etstream
