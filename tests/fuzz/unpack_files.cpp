// SPDX-License-Identifier: BSD-3-Clause
//
// Fuzz target: any bytes as a packed file, as they are and with the right hashes before the pieces. Whatever
// they are, both readers take them without a fault, and accept the same files. What they give is packed and
// unpacked again. Updates are read with a small file and a small checkpoint. Any bytes are a recipe too,
// whose tensors are those of the checkpoint, and are followed to the end.
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "core/io/read_pieces.h"
#include "core/packed/packed_format.h"
#include "etstream/checkpoint.h"
#include "etstream/packed_file.h"
#include "formats/recipe/recipe.h"
#include "require.h"

namespace {

using etstream::ByteSource;
using etstream::Result;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 20;

using etstream::packed::BaseHeader;
using etstream::packed::FileHeader;
using etstream::packed::RecipeHeader;

/// Returns what updates are read with.
const etstream::UpdateBase& base() {
  static const etstream::UpdateBase made = [] {
    etstream::UpdateBase out;
    Bytes numbers;
    for (int i = 0; i < 512; ++i) {
      const float number = static_cast<float>(i * 37 % 101) / 50 - 1;
      const auto bytes = std::as_bytes(std::span(&number, 1));
      numbers.insert(numbers.end(), bytes.begin(), bytes.end());
    }
    const ByteSource all = ByteSource::owned(numbers);
    out.file = all;
    const auto tensor = [&](const char* name, std::vector<std::int32_t> sizes, std::uint64_t bytes) {
      const etstream::TensorLayout layout{etstream::ScalarType::kFloat32, sizes,
                                          etstream::contiguous_dim_order(sizes.size())};
      return etstream::CheckpointTensor{name, "F32", layout, all.slice(0, bytes).value()};
    };
    out.checkpoint = {{"weights"}, {tensor("w", {16, 32}, 2048), tensor("b", {32}, 128)}};
    return out;
  }();
  return made;
}

std::uint32_t kind_of(const ByteSource& file) {
  FileHeader header;
  const auto read = file.size() < sizeof(header)
                        ? Result<void>()
                        : file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  return read ? header.kind : etstream::packed::kWhole;
}

etstream::OpenBase opener_for(const ByteSource& file) {
  return kind_of(file) == etstream::packed::kWhole ? etstream::OpenBase() : base().opener();
}

/// Follows the bytes as a recipe of the checkpoint.
void follow_recipe(std::span<const std::byte> bytes) {
  auto recipe = etstream::read_recipe(bytes);
  if (!recipe || recipe->size() > kMostUnpacked) return;
  const auto& tensors = base().checkpoint->tensors;
  for (std::size_t i = 0; i < recipe->tensors.size(); ++i) {
    const etstream::CheckpointTensor& tensor = tensors[i % tensors.size()];
    recipe->tensors[i] = {etstream::hash_of(tensor.data).value(), tensor.layout->scalar_type,
                          tensor.layout->sizes, tensor.name};
  }
  const auto made = etstream::follow(*std::move(recipe), *base().checkpoint, true);
  require(made.has_value(), "tensors with the right hashes are found");
  Bytes out(static_cast<std::size_t>(made->size()));
  (void)made->read_at(0, out);
}

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
  const auto done =
      etstream::unpack(etstream::source_reader(file), "file", *sink, {.threads = 1}, opener_for(file));
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
  const auto original = etstream::unpacked(file, opener_for(file));
  if (original && original->size() > kMostUnpacked) return;
  const auto through = read_through(file);
  if (original) {
    const auto anywhere = read_anywhere(*original);
    // One reader looks at all tensors of a recipe, the other at those that it needs.
    const bool may_differ = kind_of(file) == etstream::packed::kDerived && !through;
    require(may_differ || anywhere.has_value() == through.has_value(), "both readers accept a file, or none");
    if (may_differ) return;
    require(!anywhere || *anywhere == *through, "both readers give the same");
    if (anywhere) pack_again(*anywhere);
    return;
  }
  const auto is_packed = through ? etstream::is_packed(ByteSource::memory(*through)) : Result<bool>(true);
  require(is_packed && *is_packed, "what is read through is opened, unless it is packed twice");
}

/// Reads the bytes with the hashes that their recipe and their table have, so that what is behind their
/// checks is reached.
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
  const std::uint32_t kind = kind_of(ByteSource::memory(bytes));
  if (kind != etstream::packed::kWhole) {
    constexpr std::size_t kRecipe = sizeof(FileHeader) + sizeof(BaseHeader);
    if (bytes.size() < kRecipe + sizeof(RecipeHeader)) return;
    const auto header = std::span(bytes).subspan(sizeof(FileHeader), sizeof(BaseHeader));
    if (kind == etstream::packed::kDerived) {
      RecipeHeader recipe;
      std::memcpy(&recipe, bytes.data() + kRecipe, sizeof(recipe));
      const std::size_t end = sizeof(etstream::packed::FrameStart) + recipe.frame.size;
      if (end < sizeof(recipe) || end > bytes.size() - kRecipe) return;
      etstream::ContentHasher of_recipe;
      of_recipe.update(std::span(bytes).subspan(kRecipe + sizeof(recipe), end - sizeof(recipe)));
      const etstream::ContentHash hash = of_recipe.hash();
      std::memcpy(header.data() + offsetof(BaseHeader, hash), hash.data(), hash.size());
    }
    hasher.update(header);
  }
  hasher.update(std::span(bytes).subspan(entries, size));
  hasher.update(etstream::packed::bytes_of(footer));
  footer.table_hash = hasher.hash();
  std::memcpy(end.data(), &footer, sizeof(footer));
  read(ByteSource::memory(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  follow_recipe(bytes);
  read(ByteSource::memory(bytes));
  read_with_hash({bytes.begin(), bytes.end()});
  return 0;
}
