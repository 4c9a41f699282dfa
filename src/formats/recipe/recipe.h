// SPDX-License-Identifier: BSD-3-Clause
//
// A recipe: what makes the base of an update from the tensors of a checkpoint. schema/packed_file.md
// specifies its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "formats/recipe/weight_steps.h"

namespace etstream {

/// A tensor, which may have another name, or lie in another file, if only its bytes are the same.
struct RecipeTensor {
  ContentHash hash{};  // of its data
  ScalarType type = ScalarType::kFloat32;
  std::vector<std::int32_t> sizes;
  std::string name;  // under which it is looked for first
};

/// The steps that give `size` bytes of the base.
struct RecipePart {
  std::uint64_t size = 0;
  TensorSteps steps;
};

/// The bytes of all parts, one after another, are the base.
struct Recipe {
  std::vector<RecipeTensor> tensors;
  std::vector<RecipePart> parts;

  [[nodiscard]] std::uint64_t size() const noexcept;
};

/// Makes a recipe of parts whose steps have the places of tensors in `checkpoint`. Hashes are missing, but
/// take their room.
[[nodiscard]] Recipe recipe_of(std::vector<RecipePart> parts, const Checkpoint& checkpoint);

/// Reads the tensors of the recipe, whose names the checkpoint has once, for their hashes. Errors: those of
/// reading.
[[nodiscard]] Result<void> set_hashes(Recipe& recipe, const Checkpoint& checkpoint);

/// Returns the recipe as it lies in an update.
[[nodiscard]] std::vector<std::byte> bytes_of(const Recipe& recipe);

/// Reads a recipe from an update. Errors: kUnsupported for a step that is not known; kCorrupt for bytes that
/// are no recipe.
[[nodiscard]] Result<Recipe> read_recipe(std::span<const std::byte> bytes);

/// Returns the base that the recipe makes of the checkpoint's tensors, as they are read: of a part of it,
/// only the tensors behind that are. Each tensor is found, and compared with its hash, before it is used, or
/// now with `checks_all`. Memory: 4 MiB, and that of the recipe and of the checkpoint. Errors:
/// kInvalidArgument for a checkpoint without a tensor, or with other bytes in it; when it is read, kCorrupt
/// for steps that do not give the bytes that a part has, and kTooLarge where tensors are read far more often
/// than the base is.
[[nodiscard]] Result<ByteSource> follow(Recipe recipe, Checkpoint checkpoint, bool checks_all);

}  // namespace etstream
