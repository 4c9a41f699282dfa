// SPDX-License-Identifier: BSD-3-Clause
//
// The base of a program's update, which a recipe makes of a checkpoint.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/packed/packed_format.h"
#include "etstream/bundled_program.h"
#include "etstream/checkpoint.h"
#include "etstream/diff.h"
#include "etstream/reweight.h"
#include "files/origins/explained_payloads.h"
#include "files/origins/origin_search.h"
#include "formats/recipe/recipe.h"

namespace etstream {
namespace {

/// A shorter payload takes less than its part of a recipe.
constexpr std::uint64_t kLeastPart = 128;

/// Steps that give `part.size` bytes of a file.
struct Place {
  std::uint64_t offset = 0;  // in the file
  RecipePart part;
};

/// Returns the places in `file` of what steps give, in order and apart.
Result<std::vector<Place>> find_places(const ByteSource& file, const ProgramFile& program,
                                       const Checkpoint& checkpoint) {
  Checkpoint known = checkpoint;
  ETSTREAM_ASSIGN(const auto payloads, explain_payloads(program, {}, known));
  std::vector<Place> all;
  for (const ExplainedPayload& each : payloads) {
    const auto offset = each.payload.data.offset_in(file);
    std::uint64_t at = 0;
    for (const WeightPiece& piece : each.pieces) {
      if (!offset || piece.at != at) continue;
      all.push_back({*offset + at, {piece.size, piece.steps}});
      at += piece.size;
    }
  }
  std::ranges::stable_sort(all, {}, &Place::offset);
  std::vector<Place> out;
  std::uint64_t end = 0;
  for (Place& place : all) {
    // Frequencies of rotary embeddings are no tensors of the checkpoint.
    bool is_there = place.offset >= end;
    for_each_place(place.part.steps,
                   [&](std::size_t tensor) { is_there &= tensor < checkpoint.tensors.size(); });
    if (!is_there) continue;
    end = place.offset + place.part.size;
    out.push_back(std::move(place));
  }
  return out;
}

Result<Base> base_of(std::vector<Place> places, const Checkpoint& checkpoint) {
  const auto size = [](const Place& place) { return place.part.size; };
  std::erase_if(places, [&](const Place& place) { return size(place) < kLeastPart; });
  Base out;
  Recipe made;
  while (true) {
    std::vector<RecipePart> parts;
    parts.reserve(places.size());
    for (const Place& place : places) parts.push_back(place.part);
    made = recipe_of(std::move(parts), checkpoint);
    out.recipe = bytes_of(made);
    if (out.recipe.size() <= packed::kMostRecipe) break;
    // The largest stay.
    std::ranges::stable_sort(places, std::greater(), size);
    places.resize(places.size() * packed::kMostRecipe / out.recipe.size());
    std::ranges::sort(places, {}, &Place::offset);
  }
  ETSTREAM_TRY(set_hashes(made, checkpoint));
  out.recipe = bytes_of(made);
  // The recipe is followed as it is written.
  ETSTREAM_ASSIGN(Recipe recipe, read_recipe(out.recipe));
  ETSTREAM_ASSIGN(out.file, follow(std::move(recipe), checkpoint, false));
  ContentHasher hasher;
  hasher.update(out.recipe);
  out.hash = hasher.hash();
  std::uint64_t begin = 0;
  for (const Place& place : places) {
    out.ranges.push_back({place.offset, place.part.size, begin, true});
    begin += place.part.size;
  }
  return out;
}

}  // namespace

Result<Base> match_base(const ByteSource& file, const UpdateBase& base) {
  return without_exceptions([&]() -> Result<Base> {
    if (!base.checkpoint) return match_base(file, *base.file);
    const auto program = open_program(file);
    const auto places = program ? find_places(file, *program, *base.checkpoint) : program.error();
    auto derived = places ? base_of(*places, *base.checkpoint) : places.error();
    if (base.file && (!derived || derived->file.size() < file.size() / 2))
      return match_base(file, *base.file);
    if (!derived || derived->file.size() > 0) return derived;
    return error_in(ErrorCode::kInvalidArgument, name_of(*base.checkpoint, "the checkpoint"),
                    "gives no payload of {}, expected the checkpoint that it was exported from", file.name());
  });
}

}  // namespace etstream
