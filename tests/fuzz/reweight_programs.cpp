// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: the weights of one checkpoint in any program become those of another. The last eight bytes are
// the sizes of the program and of the first checkpoint, which the second one follows. A sound program stays
// sound, and as large.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/reweight.h"
#include "etstream/sink.h"
#include "formats/safetensors/safetensors.h"
#include "require.h"

namespace {

std::optional<etstream::Checkpoint> open_weights(std::span<const std::byte> bytes) {
  auto file = etstream::open_safetensors(etstream::ByteSource::memory(bytes));
  if (!file) return std::nullopt;
  return etstream::Checkpoint{{}, std::move(file->tensors)};
}

bool is_sound(const etstream::ProgramFile& program) {
  etstream::Findings found;
  const auto fits = etstream::verify(program, {});
  return program.verify(found).has_value() && found.ok() && fits && fits->ok();
}

void reweight(const etstream::ProgramFile& program, const etstream::Checkpoint& was,
              const etstream::Checkpoint& now) {
  const auto planned = etstream::plan(etstream::Reweighting{&program, {}, &was, &now});
  if (!planned) return;
  require(planned->origins.are_explained(), "what is replaced is explained");
  std::vector<std::byte> out;
  // Weights that can't be quantized show when they are read.
  if (!etstream::write(planned->program, *etstream::open_memory_sink(out))) return;
  require(out.size() == program.file().size(), "the program is as large as before");
  const auto again = etstream::ProgramFile::open(etstream::ByteSource::memory(out));
  require(again.has_value(), "what is written is a program");
  require(!is_sound(program) || is_sound(*again), "a sound program stays sound");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t sizes[2] = {};
  if (size < sizeof(sizes)) return 0;
  const auto bytes = std::as_bytes(std::span(data, size - sizeof(sizes)));
  std::memcpy(sizes, data + bytes.size(), sizeof(sizes));
  if (std::size_t{sizes[0]} + sizes[1] > bytes.size()) return 0;
  const auto program = etstream::ProgramFile::open(etstream::ByteSource::memory(bytes.first(sizes[0])));
  const auto was = open_weights(bytes.subspan(sizes[0], sizes[1]));
  if (!program || !was) return 0;
  static_cast<void>(etstream::explain(*program, {}, *was));
  if (const auto now = open_weights(bytes.subspan(std::size_t{sizes[0]} + sizes[1])))
    reweight(*program, *was, *now);
  return 0;
}
