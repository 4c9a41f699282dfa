// SPDX-License-Identifier: BSD-3-Clause
#include "formats/recipe/recipe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/checked.h"
#include "core/base/hashes.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/derived_storage.h"
#include "core/io/read_pieces.h"
#include "etstream/checkpoint.h"
#include "etstream/file_kind.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/checkpoint/weight_sets.h"

namespace etstream {
namespace {

constexpr std::size_t kMostSteps = 8;
constexpr std::size_t kLeastDropped = std::size_t{64} << 10;

/// Reads a recipe from bytes, or writes it: one description for both. All is numbers of 4 bytes, but for
/// hashes and names.
class RecipeBytes {
 public:
  RecipeBytes() = default;
  explicit RecipeBytes(std::span<const std::byte> in) : in_(in), reads_(true) {}

  void pass(Recipe& recipe) {
    list(recipe.tensors, [this](RecipeTensor& tensor) { pass(tensor); });
    list(recipe.parts, [this](RecipePart& part) {
      auto low = static_cast<std::uint32_t>(part.size);
      auto high = static_cast<std::uint32_t>(part.size >> 32);
      numbers(low, high);
      part.size = std::uint64_t{high} << 32 | low;
      pass(part.steps);
    });
  }

  [[nodiscard]] std::vector<std::byte> take() { return std::move(out_); }

  /// Returns the first thing that was wrong with what was read to its end.
  [[nodiscard]] Result<void> check_read() const {
    if (problem_.empty() && in_.empty()) return {};
    const std::string_view found = problem_.empty() ? std::string_view("more bytes behind it") : problem_;
    return make_error(has_unknown_ ? ErrorCode::kUnsupported : ErrorCode::kCorrupt, "a recipe, found {}",
                      found);
  }

 private:
  void fail(std::string_view problem, bool is_unknown = false) {
    if (!problem_.empty()) return;
    problem_ = problem;
    has_unknown_ = is_unknown;
  }

  void raw(std::span<std::byte> bytes) {
    if (!reads_) {
      out_.insert(out_.end(), bytes.begin(), bytes.end());
    } else if (bytes.size() > in_.size()) {
      fail("its end");
      std::ranges::fill(bytes, std::byte{0});
    } else {
      std::ranges::copy(in_.first(bytes.size()), bytes.begin());
      in_ = in_.subspan(bytes.size());
    }
  }

  template <class Number>
  void number(Number& value) {
    std::uint32_t bits = 0;
    if constexpr (std::is_same_v<Number, float>) {
      bits = std::bit_cast<std::uint32_t>(value);
    } else {
      bits = static_cast<std::uint32_t>(value);
    }
    raw(std::as_writable_bytes(std::span(&bits, 1)));
    if (!reads_) return;
    if constexpr (std::is_same_v<Number, float>) {
      value = std::bit_cast<float>(bits);
    } else {
      value = static_cast<Number>(bits);
      if (static_cast<std::uint32_t>(value) != bits) fail("a number that is too large");
    }
  }
  template <class... Numbers>
  void numbers(Numbers&... values) {
    (number(values), ...);
  }

  template <class List, class Each>
  void list(List& values, const Each& each, std::size_t most = std::size_t{1} << 20) {
    auto count = static_cast<std::uint32_t>(values.size());
    number(count);
    if (reads_ && count > std::min(most, in_.size() / sizeof(count))) {
      fail("a number that is too large");
      count = 0;
    }
    if (reads_) values.resize(count);
    for (auto& value : values) {
      if (problem_.empty()) each(value);
    }
  }

  void pass(RecipeTensor& tensor) {
    raw(tensor.hash);
    number(tensor.type);
    list(
        tensor.sizes, [this](std::int32_t& size) { number(size); }, kMostDimensions);
    // A name is filled up with zeros to numbers.
    std::vector<std::uint32_t> name((tensor.name.size() + 3) / 4);
    std::ranges::copy(std::as_bytes(std::span(tensor.name)), std::as_writable_bytes(std::span(name)).begin());
    list(name, [this](std::uint32_t& characters) { number(characters); });
    if (!reads_) return;
    tensor.name.assign(reinterpret_cast<const char*>(name.data()), 4 * name.size());
    tensor.name.resize(tensor.name.find_last_not_of('\0') + 1);
  }

  void pass(TensorSteps& steps) {
    number(steps.tensor);
    list(
        steps.steps, [this](WeightStep& step) { pass(step); }, kMostSteps);
  }

  void pass(WeightStep& step) {
    std::size_t kind = step.index();
    number(kind);
    if (reads_) step = empty_step(kind, std::make_index_sequence<std::variant_size_v<WeightStep>>());
    std::visit([this](auto& each) { fields(each); }, step);
  }

  template <std::size_t... kKinds>
  WeightStep empty_step(std::size_t kind, std::index_sequence<kKinds...> /*all*/) {
    WeightStep out;
    const bool is_known = ((kind == kKinds && (out.emplace<kKinds>(), true)) || ...);
    if (!is_known) fail("a step that this version does not know", true);
    return out;
  }

  void fields(CastStep& step) { number(step.type); }
  void fields(PermuteStep& step) {
    number(step.groups);
    list(
        step.order, [this](std::uint8_t& dimension) { number(dimension); }, kMostDimensions + 1);
  }
  void fields(InterleaveRopeStep& step) { number(step.head_dim); }
  void fields(QuantizeStep& step) { fields(step.how); }
  void fields(ScalesStep& step) { fields(step.how); }
  void fields(Quantization& how) {
    numbers(how.group, how.lowest, how.highest, how.least_scale, how.in_bfloat16, how.high_is_first);
    const auto is_it = [&](Quantization known) {
      known.group = how.group;
      known.in_bfloat16 = how.in_bfloat16;
      known.high_is_first = how.high_is_first;
      return known == how;
    };
    if (std::ranges::none_of(kQuantizations, is_it)) {
      fail("a quantization that this version does not know", true);
    }
  }
  void fields(NormStep& step) {
    numbers(step.part, step.mean, step.variance, step.weight, step.bias, step.epsilon, step.axis,
            step.has_bias);
    if (step.part > NormStep::Part::kBiasOfConvolution) {
      fail("a part of a batch norm that this version does not know", true);
    }
  }
  void fields(QuantizeBiasStep& step) {
    numbers(step.input_scale, step.are_scales);
    if (depth_ != 0) return fail("the scales of a bias as those of weights");
    ++depth_;
    list(step.scales, [this](TensorSteps& part) { pass(part); });
    --depth_;
  }

  std::span<const std::byte> in_;
  bool reads_ = false;
  std::vector<std::byte> out_;
  int depth_ = 0;
  std::string_view problem_;  // the first
  bool has_unknown_ = false;
};

/// Counts what is read of tensors against what is read of the base.
class Meter {
 public:
  Meter(std::string name, std::uint64_t size) : name_(std::move(name)), left_(kFree + kMost * size) {}

  void allow(std::uint64_t bytes) { left_ += kMost * bytes; }
  Result<void> count(std::uint64_t bytes) {
    if (bytes > left_) {
      return error_in(ErrorCode::kTooLarge, name_,
                      "expected a recipe that reads tensors at most {} times on average, found more", kMost);
    }
    left_ -= bytes;
    return {};
  }

 private:
  static constexpr std::uint64_t kMost = 32;
  static constexpr std::uint64_t kFree = std::uint64_t{64} << 20;

  std::string name_;
  std::uint64_t left_;
};

/// The data of a tensor, whose reads are counted.
class MeteredData final : public DerivedStorage {
 public:
  MeteredData(ByteSource data, Meter& meter) : data_(std::move(data)), meter_(meter) {}

  std::uint64_t size() const noexcept override { return data_.size(); }
  std::string name() const override { return data_.name(); }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override { see(data_); }
  void drop_pages(std::uint64_t offset, std::uint64_t size) const noexcept override {
    data_.drop_pages(offset, size);
  }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ETSTREAM_TRY(meter_.count(out.size()));
    return data_.read_at(offset, out);
  }

 private:
  const ByteSource data_;
  Meter& meter_;
};

class RecipeBase final : public DerivedStorage {
 public:
  RecipeBase(Recipe recipe, Checkpoint checkpoint)
      : recipe_(std::move(recipe)),
        checkpoint_(std::move(checkpoint)),
        name_(checkpoint_.files.empty() ? "the checkpoint" : checkpoint_.files.front()),
        found_(recipe_.tensors.size()),
        find_([this](std::size_t place) { return find(place); }),
        meter_(name_, size_of(checkpoint_) + recipe_.size()) {
    std::uint64_t begin = 0;
    for (const RecipePart& part : recipe_.parts) begins_.push_back(std::exchange(begin, begin + part.size));
    for (const CheckpointTensor& tensor : checkpoint_.tensors) {
      if (!is_plain(tensor)) continue;
      by_name_.emplace(tensor.name, &tensor);
      by_shape_.emplace(Shape(tensor.layout->scalar_type, tensor.layout->sizes), &tensor);
    }
  }

  std::uint64_t size() const noexcept override { return recipe_.size(); }
  std::string name() const override { return name_; }
  void for_each_part(const std::function<void(const ByteSource&)>& see) const override {
    for (const CheckpointTensor& tensor : checkpoint_.tensors) see(tensor.data);
  }

  Result<void> check_all() const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < found_.size(); ++i) ETSTREAM_TRY(find(i));
    return {};
  }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    meter_.allow(out.size());
    while (!out.empty()) {
      const auto next = std::ranges::upper_bound(begins_, offset);
      const auto index = static_cast<std::size_t>(next - begins_.begin()) - 1;
      if (!made_ || made_index_ != index) {
        made_.reset();
        ETSTREAM_ASSIGN(made_, make(index));
        made_index_ = index;
      }
      const std::uint64_t at = offset - begins_[index];
      const auto part = out.first(std::min<std::size_t>(out.size(), made_->size() - at));
      ETSTREAM_TRY(made_->read_at(at, part));
      // Pages of a smaller part are shared with what is read next.
      if (part.size() >= kLeastDropped) made_->drop_pages(at, part.size());
      offset += part.size();
      out = out.subspan(part.size());
    }
    return {};
  }

 private:
  using Shape = std::pair<ScalarType, std::vector<std::int32_t>>;

  static std::uint64_t size_of(const Checkpoint& checkpoint) {
    std::uint64_t out = 0;
    for (const CheckpointTensor& tensor : checkpoint.tensors) out += tensor.data.size();
    return out;
  }

  Result<ByteSource> make(std::size_t index) const {
    const RecipePart& part = recipe_.parts[index];
    ETSTREAM_ASSIGN(ByteSource out, take_steps(find_, part.steps));
    if (out.size() == part.size) return out;
    return error_in(ErrorCode::kCorrupt, name_,
                    "expected steps that give {} of part {} of a recipe, found {}",
                    counted(part.size, "byte"), index, counted(out.size(), "byte"));
  }

  Result<ContentHash> known_hash(const CheckpointTensor& tensor) const {
    const auto [there, is_new] = hashes_.try_emplace(&tensor);
    if (is_new) {
      auto hash = hash_of(tensor.data);
      if (!hash) hashes_.erase(there);
      if (!hash) return hash.error();
      there->second = *hash;
    }
    return there->second;
  }

  /// Returns the tensor, which is the right one.
  Result<const CheckpointTensor*> find(std::size_t place) const {
    std::optional<CheckpointTensor>& out = found_[place];
    if (out) return &*out;
    const RecipeTensor& tensor = recipe_.tensors[place];
    const Shape shape(tensor.type, tensor.sizes);
    const CheckpointTensor* right = nullptr;
    const auto named = by_name_.find(tensor.name);
    const bool has_name = named != by_name_.end() &&
                          shape == Shape(named->second->layout->scalar_type, named->second->layout->sizes);
    if (has_name) {
      ETSTREAM_ASSIGN(const ContentHash hash, known_hash(*named->second));
      if (hash == tensor.hash) right = named->second;
    }
    if (right == nullptr) {
      const auto [by_hash, is_new] = by_hash_.try_emplace(shape);
      const auto [begin, end] = by_shape_.equal_range(shape);
      for (auto each = begin; is_new && each != end; ++each) {
        ETSTREAM_ASSIGN(const ContentHash hash, known_hash(*each->second));
        by_hash->second.emplace(hash, each->second);
      }
      const auto same = by_hash->second.find(tensor.hash);
      if (same != by_hash->second.end()) right = same->second;
    }
    if (right == nullptr) {
      return error_in(ErrorCode::kInvalidArgument, name_,
                      "is not what the update was made from: expected a tensor {} like {} with the hash {}, "
                      "found {}",
                      describe(TensorLayout{tensor.type, tensor.sizes, {}}), quote(tensor.name),
                      hex(tensor.hash), has_name ? "one with other bytes" : "none");
    }
    out = *right;
    out->data = ByteSource(std::make_shared<MeteredData>(right->data, meter_));
    return &*out;
  }

  const Recipe recipe_;
  const Checkpoint checkpoint_;
  const std::string name_;
  std::vector<std::uint64_t> begins_;  // of the parts in the base
  std::map<std::string_view, const CheckpointTensor*> by_name_;
  std::multimap<Shape, const CheckpointTensor*> by_shape_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::optional<CheckpointTensor>> found_;
  mutable std::map<const CheckpointTensor*, ContentHash> hashes_;
  mutable std::map<Shape, std::map<ContentHash, const CheckpointTensor*>> by_hash_;
  const FindTensor find_;
  mutable Meter meter_;
  mutable std::optional<ByteSource> made_;  // the part that was read last
  mutable std::size_t made_index_ = 0;
};

}  // namespace

std::uint64_t Recipe::size() const noexcept {
  std::uint64_t out = 0;
  for (const RecipePart& part : parts) out += part.size;
  return out;
}

Recipe recipe_of(std::vector<RecipePart> parts, const Checkpoint& checkpoint) {
  Recipe out{{}, std::move(parts)};
  std::map<std::size_t, std::size_t> places;
  for (RecipePart& part : out.parts) {
    for_each_place(part.steps, [&](std::size_t& place) {
      place = places.try_emplace(place, places.size()).first->second;
    });
  }
  out.tensors.resize(places.size());
  for (const auto& [from, to] : places) {
    const CheckpointTensor& tensor = checkpoint.tensors[from];
    out.tensors[to] = {{}, tensor.layout->scalar_type, tensor.layout->sizes, tensor.name};
  }
  return out;
}

Result<void> set_hashes(Recipe& recipe, const Checkpoint& checkpoint) {
  std::map<std::string_view, const CheckpointTensor*> by_name;
  for (const CheckpointTensor& tensor : checkpoint.tensors) by_name.emplace(tensor.name, &tensor);
  for (RecipeTensor& tensor : recipe.tensors) {
    ETSTREAM_ASSIGN(tensor.hash, hash_of(by_name.at(tensor.name)->data));
  }
  return {};
}

std::vector<std::byte> bytes_of(const Recipe& recipe) {
  Recipe written = recipe;
  RecipeBytes bytes;
  bytes.pass(written);
  return bytes.take();
}

Result<Recipe> read_recipe(std::span<const std::byte> bytes) {
  Recipe out;
  RecipeBytes reader(bytes);
  reader.pass(out);
  ETSTREAM_TRY(reader.check_read());
  std::uint64_t size = 0;
  for (RecipePart& part : out.parts) {
    const auto sum = checked_add(size, part.size);
    bool is_right = part.size != 0 && sum.has_value();
    for_each_place(part.steps, [&](std::size_t place) { is_right &= place < out.tensors.size(); });
    if (!is_right) {
      return make_error(ErrorCode::kCorrupt, "a recipe, found a part of no bytes, or of no tensor");
    }
    size = *sum;
  }
  return out;
}

Result<ByteSource> follow(Recipe recipe, Checkpoint checkpoint, bool checks_all) {
  const auto out = std::make_shared<RecipeBase>(std::move(recipe), std::move(checkpoint));
  if (checks_all) ETSTREAM_TRY(out->check_all());
  return ByteSource(out);
}

Result<UpdateBase> UpdateBase::open(const std::vector<std::string>& paths, const CheckpointOptions& options) {
  return without_exceptions([&]() -> Result<UpdateBase> {
    UpdateBase out;
    if (paths.size() == 1 && !is_folder(paths.front())) {
      ETSTREAM_ASSIGN(out.file, options.open_file(paths.front()));
      const auto kind = file_kind(*out.file);
      constexpr std::array kWeights = {FileKind::kSafetensors, FileKind::kGguf, FileKind::kTorch,
                                       FileKind::kTensorData};
      if (kind && std::ranges::find(kWeights, *kind) == kWeights.end()) return out;
    }
    auto opened = open_joined_checkpoint(paths, options);
    if (opened) {
      out.checkpoint = *std::move(opened);
    } else if (!out.file || !is_about_file(opened.error())) {
      return opened.error();
    }
    return out;
  });
}

OpenBase UpdateBase::opener() const {
  return [base = *this](std::span<const std::byte> recipe, bool checks_all) -> Result<ByteSource> {
    if (recipe.empty() && base.file) return *base.file;
    if (!recipe.empty() && base.checkpoint) {
      ETSTREAM_ASSIGN(Recipe read, read_recipe(recipe));
      return follow(std::move(read), *base.checkpoint, checks_all);
    }
    const bool is_file = base.file.has_value();
    return error_in(ErrorCode::kInvalidArgument, is_file ? base.file->name() : base.checkpoint->files.front(),
                    "is {}, expected {} that the update was made from",
                    is_file ? "no checkpoint" : "a checkpoint", is_file ? "the one" : "the file");
  };
}

}  // namespace etstream
