// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a torch file (.pth, .pt2), or as the pickle of one. Whatever they are, they are
// read without a fault, and tensors that can be written are read again as they were.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/sink.h"
#include "etstream/verify.h"
#include "formats/torch/torch_file.h"
#include "require.h"

namespace {

using Tensors = std::vector<etstream::CheckpointTensor>;

constexpr std::uint64_t kMostWritten = std::uint64_t{1} << 20;

/// Returns the bytes of a tensor, which lie in the file or are gathered from there.
std::vector<std::byte> bytes_of(const etstream::ByteSource& data) {
  std::vector<std::byte> out(static_cast<std::size_t>(data.size()));
  require(data.read_at(0, out).has_value(), "the bytes of a tensor that is there can be read");
  return out;
}

bool same(const Tensors& one, const Tensors& other) {
  return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
    return a.name == b.name && a.type == b.type && a.layout == b.layout && a.shape == b.shape &&
           bytes_of(a.data) == bytes_of(b.data);
  });
}

void write_again(const Tensors& tensors) {
  std::uint64_t size = 0;
  for (const etstream::CheckpointTensor& tensor : tensors) {
    if (tensor.data.size() > kMostWritten || (size += tensor.data.size()) > kMostWritten) return;
  }
  const auto plan = etstream::plan_torch_file({{}, tensors});
  if (!plan || plan->size > kMostWritten) return;
  std::vector<std::byte> written;
  require(etstream::write(*plan, *etstream::open_memory_sink(written)).has_value(), "a plan can be written");
  const auto file = etstream::ByteSource::memory(written);
  const auto read = etstream::open_torch_file(file);
  require(read && same(*read, tensors), "what is written is read as it was");
  const auto findings = etstream::verify(file);
  require(findings && findings->ok(), "what is written verifies");
}

/// Reads the bytes as the pickle of an archive with two storages.
void read_pickle(const etstream::ByteSource& pickle) {
  constexpr std::uint64_t kSmall = 64;
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 40;
  const etstream::TorchArchive archive{
      pickle,
      {{"data/0", etstream::ByteSource::zeros(kSmall)}, {"data/1", etstream::ByteSource::zeros(kLarge)}}};
  if (const auto tensors = etstream::saved_tensors(archive, pickle)) write_again(*tensors);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = etstream::ByteSource::memory(std::as_bytes(std::span(data, size)));
  // An archive begins with these bytes; a pickle would end there.
  if (size < 2 || data[0] != 'P' || data[1] != 'K') {
    read_pickle(file);
    return 0;
  }
  static_cast<void>(etstream::verify(file));
  if (const auto tensors = etstream::open_torch_file(file)) write_again(*tensors);
  return 0;
}
