// SPDX-License-Identifier: BSD-3-Clause
//
// The text that a function prints.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace etstream {

/// Returns what `print` writes to a stream.
template <class F>
std::string printed_to(std::FILE* stream, F&& print) {
  std::fflush(stream);
  const int kept = ::dup(::fileno(stream));
  std::FILE* const file = std::tmpfile();
  REQUIRE((kept >= 0 && file != nullptr));
  ::dup2(::fileno(file), ::fileno(stream));
  print();
  std::fflush(stream);
  ::dup2(kept, ::fileno(stream));
  ::close(kept);
  std::string out(static_cast<std::size_t>(::lseek(::fileno(file), 0, SEEK_END)), '\0');
  CHECK(::pread(::fileno(file), out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
  std::fclose(file);
  return out;
}

}  // namespace etstream
