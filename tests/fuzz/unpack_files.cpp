// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a packed file, as they are and with the right hash of the table. Whatever they
// are, both readers take them without a fault, and accept the same files. What they give is packed and
// unpacked again.
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "core/packed/packed_format.h"
#include "etstream/packed_file.h"
#include "require.h"

namespace {

using etstream::ByteSource;
using etstream::Result;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 20;

/// Returns the original as a reader at any offset has it. It is read from the last bytes to the first.
Result<Bytes> read_anywhere(const ByteSource& original) {
  constexpr std::size_t kRead = 600'000;  // not a part of a piece's size
  Bytes out(static_cast<std::size_t>(original.size()));
  for (std::size_t end = out.size(); end > 0;) {
    const std::size_t begin = end - std::min(end, kRead);
    const auto read = original.read_at(begin, std::span(out).subspan(begin, end - begin));
    if (!read) return read.error();
    end = begin;
  }
  if (const auto checked = etstream::check_packed(original); !checked) return checked.error();
  return out;
}

/// Returns the original as a reader from the first byte to the last has it.
Result<Bytes> read_through(const ByteSource& file) {
  Bytes out;
  const auto sink = etstream::open_memory_sink(out);
  const auto done = etstream::unpack(etstream::source_reader(file), "file", *sink, {.threads = 1});
  if (!done) return done.error();
  return out;
}

void pack_again(const Bytes& original) {
  Bytes packed;
  const auto sink = etstream::open_packing_sink(etstream::open_memory_sink(packed), {.threads = 1});
  require(sink->append(ByteSource::memory(original)) && sink->commit(), "what was packed can be packed");
  const auto again = read_through(ByteSource::memory(packed));
  require(again && *again == original, "what is packed is unpacked as it was");
}

void read(const ByteSource& file) {
  const auto original = etstream::unpacked(file);
  if (original && original->size() > kMostUnpacked) return;
  const auto through = read_through(file);
  if (original) {
    const auto anywhere = read_anywhere(*original);
    require(anywhere.has_value() == through.has_value(), "both readers accept a file, or none");
    require(!anywhere || *anywhere == *through, "both readers give the same");
    if (anywhere) pack_again(*anywhere);
    return;
  }
  const auto is_packed = through ? etstream::is_packed(ByteSource::memory(*through)) : Result<bool>(true);
  require(is_packed && *is_packed, "what is read through is opened, unless it is packed twice");
}

/// Reads the bytes with the hash that their table has, so that what is behind its check is reached.
void read_with_hash(Bytes bytes) {
  etstream::packed::Footer footer;
  if (bytes.size() < sizeof(footer)) return;
  const auto end = std::span(bytes).last(sizeof(footer));
  std::memcpy(&footer, end.data(), sizeof(footer));
  const std::uint64_t entries = footer.table_offset + sizeof(etstream::packed::FrameStart);
  const std::uint64_t size = std::uint64_t{footer.piece_count} * sizeof(std::uint64_t);
  if (entries > bytes.size() || size > bytes.size() - entries) return;
  footer.table_hash = {};
  etstream::ContentHasher hasher;
  hasher.update(std::span(bytes).subspan(entries, size));
  hasher.update(etstream::packed::bytes_of(footer));
  footer.table_hash = hasher.hash();
  std::memcpy(end.data(), &footer, sizeof(footer));
  read(ByteSource::memory(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(ByteSource::memory(bytes));
  read_with_hash({bytes.begin(), bytes.end()});
  return 0;
}
