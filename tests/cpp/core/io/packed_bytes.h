// SPDX-License-Identifier: BSD-3-Clause
//
// Packed files in memory, and what their two readers make of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "etstream/sink.h"
#include "file_bytes.h"
#include "test_sources.h"

namespace etstream {

inline Result<std::string> try_pack(const ByteSource& original, unsigned threads = 1) {
  std::vector<std::byte> out;
  const auto sink = open_packing_sink(open_memory_sink(out), {.threads = threads});
  if (auto done = pack(source_reader(original), "original", *sink); !done) return done.error();
  if (auto done = sink->commit(); !done) return done.error();
  return text_of(out);
}

inline std::string packed_bytes(const std::string& original, unsigned threads = 1) {
  auto out = try_pack(source_of(original), threads);
  REQUIRE_MESSAGE(out, out.error().message);
  return *std::move(out);
}

/// Returns the original as a reader at any offset has it, which has checked all hashes.
inline Result<std::string> read_anywhere(const std::string& packed) {
  auto original = unpacked(file_of(packed));
  if (!original) return original.error();
  std::string out(original->size(), '?');
  if (auto done = original->read_at(0, std::as_writable_bytes(std::span(out))); !done) return done.error();
  if (auto done = check_packed(*original); !done) return done.error();
  return out;
}

/// Returns the original as a reader from the first byte to the last has it.
inline Result<std::string> read_through(const std::string& packed, unsigned threads = 1) {
  std::vector<std::byte> out;
  if (auto done = unpack(source_reader(file_of(packed)), "bad", *open_memory_sink(out), {.threads = threads});
      !done) {
    return done.error();
  }
  return text_of(out);
}

}  // namespace etstream
