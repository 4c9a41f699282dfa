// SPDX-License-Identifier: BSD-3-Clause
#include "formats/recipe/recipe.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "etstream/checkpoint.h"
#include "etstream/packed_file.h"
#include "etstream/reweight.h"
#include "files/origins/made_network.h"
#include "files/origins/made_program.h"
#include "test_errors.h"

namespace etstream::recipe_test {
namespace {

using made::floats;
using made::tensor;

/// Returns tensors that make_program() is made of.
Checkpoint weights(std::uint64_t seed = 1) {
  return {{"weights.safetensors"},
          {tensor("a", {16, 32}, floats(512, seed)), tensor("b", {16, 32}, floats(512, seed + 1)),
           tensor("bias", {64}, floats(64, seed + 2))}};
}

Recipe recipe(std::vector<RecipePart> parts, const Checkpoint& from = weights()) {
  Recipe out = recipe_of(std::move(parts), from);
  const auto hashed = set_hashes(out, from);
  REQUIRE_MESSAGE(hashed, full_message(hashed.error()));
  return out;
}

/// Returns a recipe with steps of all kinds, and the bytes that they give.
std::vector<RecipePart> parts_of_all_kinds() {
  Quantization nibbles = kNibbles;
  nibbles.group = 32;
  nibbles.high_is_first = true;
  Quantization row = kObservedBytes;
  row.group = 32;
  NormStep norm{.mean = 2, .variance = 2, .weight = 2, .bias = 2, .epsilon = 1e-5F, .axis = 0};
  norm.part = NormStep::Part::kBias;
  const QuantizeBiasStep bias{{{1, {ScalesStep{Quantization{512, -127, 127, 1.0F / 4096}}}}}, 0.5F};
  return {{2048, {0, {}}},
          {1024, {1, {CastStep{ScalarType::kBFloat16}}}},
          {2048, {0, {PermuteStep{{1, 0}, 1}}}},
          {2048, {0, {InterleaveRopeStep{8}}}},
          {256, {0, {QuantizeStep{nibbles}}}},
          {32, {1, {ScalesStep{row}, CastStep{ScalarType::kBFloat16}}}},
          {256, {2, {norm}}},
          {256, {2, {bias}}}};
}

/// Returns the error as text, which doctest's is not.
template <class T>
std::string text_of_error(const Result<T>& result) {
  return error_of(result).c_str();
}

std::string base_of(const Recipe& given, const Checkpoint& checkpoint) {
  const auto read = read_recipe(bytes_of(given));
  REQUIRE_MESSAGE(read, full_message(read.error()));
  const auto base = follow(*read, checkpoint, true);
  REQUIRE_MESSAGE(base, full_message(base.error()));
  return text_of(*base);
}

TEST_CASE("a recipe is read as it was written, and makes what its steps give, in any order of reads") {
  const Recipe all = recipe(parts_of_all_kinds());
  CHECK(all.tensors.size() == 3);
  std::string expected;
  for (const RecipePart& part : parts_of_all_kinds()) {
    expected += made::bytes_after(weights(), WeightSteps{part.steps});
  }
  CHECK((base_of(all, weights()) == expected));
  const auto base = follow(all, weights(), false);
  REQUIRE(base.has_value());
  for (std::size_t at = expected.size(); at > 0; at -= std::min<std::size_t>(at, 777)) {
    std::vector<std::byte> bytes(std::min<std::size_t>(at, 777));
    REQUIRE(base->read_at(at - bytes.size(), bytes).has_value());
    CHECK((text_of(bytes) == expected.substr(at - bytes.size(), bytes.size())));
  }
}

TEST_CASE("tensors may have other names and another order, and be among others") {
  const Recipe all = recipe(parts_of_all_kinds());
  Checkpoint other = weights();
  std::ranges::reverse(other.tensors);
  for (CheckpointTensor& each : other.tensors) each.name = "model." + each.name;
  other.tensors.insert(other.tensors.begin(), tensor("a", {16, 32}, floats(512, 9)));
  other.tensors.push_back(tensor("b", {32, 16}, floats(512, 2)));
  CHECK((base_of(all, other) == base_of(all, weights())));
}

TEST_CASE("a checkpoint that lacks a tensor, or has other bytes in it, is named with the tensor") {
  const Recipe all = recipe(parts_of_all_kinds());
  const auto error = [&](Checkpoint other, bool checks_all) {
    const auto base = follow(all, std::move(other), checks_all);
    std::vector<std::byte> bytes(16);
    const Result<void> read = base ? base->read_at(2048, bytes) : base.error();  // of "b"
    return text_of_error(read);
  };
  const auto containing_all = [](const std::string& found, std::initializer_list<const char*> words) {
    for (const char* word : words) CHECK(found.find(word) != std::string::npos);
  };
  Checkpoint changed = weights();
  changed.tensors[1].data = source_of(floats(512, 7));
  Checkpoint lacking = weights();
  lacking.tensors.erase(lacking.tensors.begin() + 1);
  for (const bool checks_all : {false, true}) {
    containing_all(error(changed, checks_all),
                   {"kInvalidArgument: weights.safetensors: is not what the update was made from",
                    "a tensor float32 [16, 32] like 'b' with the hash", "found one with other bytes"});
    containing_all(error(lacking, checks_all), {"like 'b' with the hash", "found none"});
  }
  // Nothing is read of tensors that the bytes do not come from.
  Checkpoint without_a = weights();
  without_a.tensors.erase(without_a.tensors.begin());
  CHECK(error(without_a, false) == "no error");
  CHECK(error(without_a, true) != "no error");
}

TEST_CASE("steps that a hostile recipe has are refused when they are read, or when they are taken") {
  const auto read_error = [](const std::function<void(Recipe&)>& change) {
    Recipe bad = recipe({{2048, {0, {}}}});
    change(bad);
    return text_of_error(read_recipe(bytes_of(bad)));
  };
  Quantization of_three_bits = kNibbles;
  of_three_bits.highest = 3;
  const QuantizeBiasStep deep{{{0, {QuantizeBiasStep{{{0, {}}}, 1}}}}, 1};
  const std::vector<std::pair<std::string, std::string>> rows = {
      {read_error([](Recipe& bad) { bad.parts[0].size = 0; }),
       "kCorrupt: a recipe, found a part of no bytes"},
      {read_error([](Recipe& bad) { bad.parts[0].steps.tensor = 1; }), "kCorrupt: a recipe, found a part of"},
      {read_error([](Recipe& bad) {
         bad.parts.push_back(bad.parts[0]);
         bad.parts[1].size = ~std::uint64_t{0};
       }),
       "kCorrupt: a recipe, found a part"},
      {read_error([](Recipe& bad) { bad.parts[0].steps.steps.assign(9, CastStep{}); }),
       "kCorrupt: a recipe, found a number that is too large"},
      {read_error([&](Recipe& bad) { bad.parts[0].steps.steps = {QuantizeStep{of_three_bits}}; }),
       "kUnsupported: a recipe, found a quantization that this version does not know"},
      {read_error([&](Recipe& bad) { bad.parts[0].steps.steps = {deep}; }),
       "kCorrupt: a recipe, found the scales of a bias as those of weights"},
      {read_error([](Recipe& bad) {
         bad.parts[0].steps.steps = {NormStep{.part = static_cast<NormStep::Part>(9)}};
       }),
       "kUnsupported: a recipe, found a part of a batch norm that this version does not know"}};
  for (const auto& row : rows) {
    CAPTURE(row.second);
    CHECK(row.first.starts_with(row.second));
  }
  std::vector<std::byte> unknown = bytes_of(recipe({{1024, {0, {CastStep{ScalarType::kFloat16}}}}}));
  unknown[unknown.size() - 8] = std::byte{7};
  CHECK(error_of(read_recipe(unknown)) ==
        exactly("kUnsupported: a recipe, found a step that this version does not know"));
  Quantization uneven = kBytes;
  uneven.group = 7;
  const std::vector<std::vector<WeightStep>> steps = {
      {PermuteStep{{0, 5}, 1}},
      {PermuteStep{{0, 0}, 1}},
      {PermuteStep{{0, 1}, 3}},
      {InterleaveRopeStep{0}},
      {InterleaveRopeStep{1}},
      {InterleaveRopeStep{64}},
      {QuantizeStep{uneven}},
      {CastStep{ScalarType::kBFloat16}, QuantizeStep{kBytes}},
      {CastStep{static_cast<ScalarType>(99)}},
      {QuantizeStep{Quantization{512, -8, 7, kNibbles.least_scale}}, PermuteStep{{1, 0}, 1}},
      {NormStep{.axis = 9}},
      {QuantizeBiasStep{{}, 1}},
      {CastStep{ScalarType::kFloat64}}};  // gives more than the part has
  for (const auto& each : steps) {
    CAPTURE(describe(each.front()));
    const auto base = follow(recipe({{2048, {0, each}}}), weights(), true);
    REQUIRE(base.has_value());
    std::vector<std::byte> byte(1);
    CHECK_FALSE(base->read_at(0, byte).has_value());
  }
}

TEST_CASE("any bytes are read as a recipe without a fault") {
  const std::vector<std::byte> right = bytes_of(recipe(parts_of_all_kinds()));
  for (std::size_t size = 0; size < right.size(); ++size) {
    CHECK_FALSE(read_recipe(std::span(right).first(size)).has_value());
  }
  testing::SeededRandom random(1);
  for (std::uint64_t i = 0; i < 500 * testing::rounds(); ++i) {
    std::vector<std::byte> bytes = right;
    for (int n = 0; n < 3; ++n) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(random.one_in(2) ? 4 : 256));
    }
    const auto read = read_recipe(bytes);
    const auto base =
        read && read->size() < 100'000 ? follow(*read, weights(), false) : Result<ByteSource>(ByteSource());
    if (!base) continue;
    std::vector<std::byte> all(base->size());
    (void)base->read_at(0, all);
  }
}

TEST_CASE("what a recipe reads is bounded by what is read of it") {
  // One scale of a large tensor, over and over.
  const Checkpoint large{{"large"}, {tensor("w", {1 << 20}, std::string(4 << 20, 'x'))}};
  Quantization one = kBytes;
  one.group = 1 << 20;
  const RecipePart part{4, {0, {ScalesStep{one}}}};
  const auto base = follow(recipe({part, part}, large), large, false);
  REQUIRE(base.has_value());
  Result<void> read;
  int times = 0;
  std::vector<std::byte> scale(4);
  for (; read && times < 200; ++times) read = base->read_at(4 * static_cast<std::uint64_t>(times % 2), scale);
  CHECK(
      error_of(read) ==
      exactly(
          "kTooLarge: large: expected a recipe that reads tensors at most 32 times on average, found more"));
  CHECK(times > 40);
}

/// Returns a program of a copy, a cast, a transposed and a quantized tensor, and one that no tensor gives.
ByteSource program() {
  const auto bytes = [](std::size_t tensor, std::vector<WeightStep> steps) {
    return made::bytes_after(weights(), tensor, std::move(steps));
  };
  made::Program out;
  out.constants = {{bytes(0, {}), {16, 32}},
                   {bytes(1, {CastStep{ScalarType::kFloat16}}), {16, 32}, "", ScalarType::kFloat16},
                   {bytes(1, {PermuteStep{{1, 0}, 1}}), {32, 16}},
                   {floats(100, 77), {100}}};
  return source_of(made::file(out));
}

std::vector<std::byte> packed_with(const Base& base, const ByteSource& file) {
  std::vector<std::byte> out;
  const auto sink = open_packing_sink(open_memory_sink(out), {.threads = 1}, base);
  REQUIRE(pack(source_reader(file), "program", *sink).has_value());
  REQUIRE(sink->commit().has_value());
  return out;
}

TEST_CASE("a program is packed without what its checkpoint gives, and restored with it") {
  const ByteSource file = program();
  const UpdateBase own{{}, weights()};
  const auto base = match_base(file, own);
  REQUIRE_MESSAGE(base, full_message(base.error()));
  CHECK(base->ranges.size() == 3);
  const std::vector<std::byte> update = packed_with(*base, file);
  CHECK(update.size() + 4000 < file.size());
  std::vector<std::byte> restored;
  const auto sink = open_memory_sink(restored);
  const auto done = unpack(source_reader(ByteSource::memory(update)), "update", *sink, {}, own.opener());
  REQUIRE_MESSAGE(done, full_message(done.error()));
  CHECK((text_of(restored) == text_of(file)));
  const auto opened = unpacked(ByteSource::memory(update), own.opener());
  REQUIRE_MESSAGE(opened, full_message(opened.error()));
  CHECK((text_of(*opened) == text_of(file)));
  CHECK(check_packed(*opened).has_value());
  const auto summary = read_update(ByteSource::memory(update));
  REQUIRE(summary.has_value());
  CHECK(summary->is_derived);

  const auto error = [&](const UpdateBase& other) {
    std::vector<std::byte> out;
    const auto to = open_memory_sink(out);
    auto found =
        error_of(unpack(source_reader(ByteSource::memory(update)), "update", *to, {}, other.opener()));
    CHECK(out.empty());
    return found;
  };
  CHECK(error({{}, weights(5)}) == containing("is not what the update was made from"));
  CHECK(
      error({source_of("x"), {}}) ==
      exactly("kInvalidArgument: memory: is no checkpoint, expected the one that the update was made from"));
  CHECK(error_of(match_base(file, UpdateBase{{}, weights(5)})) ==
        containing("gives no payload of memory, expected the checkpoint that it was exported from"));
  CHECK_FALSE(match_base(source_of("no program"), own).has_value());
}

TEST_CASE("each byte of a derived update is covered by a hash") {
  const ByteSource file = program();
  const UpdateBase own{{}, weights()};
  const auto base = match_base(file, own);
  REQUIRE(base.has_value());
  const std::vector<std::byte> update = packed_with(*base, file);
  for (std::size_t at = 0; at < update.size(); at += at < 600 ? 1 : 7) {
    if (at >= 24 && at < 32) continue;  // unused
    std::vector<std::byte> flipped = update;
    flipped[at] ^= std::byte{1};
    CAPTURE(at);
    CHECK_FALSE(read_update(ByteSource::memory(flipped)).has_value());
    const auto opened = unpacked(ByteSource::memory(flipped), own.opener());
    // Some fields that say how a piece was coded are checked without the base alone.
    CHECK((!opened || !check_packed(*opened) || text_of(*opened) == text_of(file)));
  }
}

}  // namespace
}  // namespace etstream::recipe_test
