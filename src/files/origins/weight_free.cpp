// SPDX-License-Identifier: BSD-3-Clause
#include "files/origins/weight_free.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/tensor.h"
#include "flatbuffer/json/json_reader.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/tensor/converted_floats.h"

namespace etstream {
namespace {

constexpr std::uint64_t kPiece = 8192;           // elements that are read at once
constexpr std::uint64_t kMostColumns = 1 << 16;  // of a table of positions

/// The elements of a payload as float64, whatever their type.
class Numbers {
 public:
  [[nodiscard]] static std::optional<Numbers> open(const ByteSource& data, ScalarType type) {
    switch (type) {
      case ScalarType::kFloat16:
      case ScalarType::kBFloat16:
      case ScalarType::kFloat32:
      case ScalarType::kFloat64: {
        auto converted = convert_floats(data, type, ScalarType::kFloat64);
        if (!converted) return std::nullopt;
        return Numbers(*std::move(converted), ScalarType::kFloat64);
      }
      case ScalarType::kUInt8:
      case ScalarType::kInt8:
      case ScalarType::kInt16:
      case ScalarType::kInt32:
      case ScalarType::kInt64:
      case ScalarType::kBool:
        return Numbers(data, type);
      default:
        return std::nullopt;
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return data_.size() / item_size(type_); }

  /// Calls `see(index, number)` in order until it returns false. Returns whether it never did.
  template <class See>
  Result<bool> for_each(See see) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(kPiece * item_size(type_)));
    for (std::uint64_t at = 0; at < size(); at += kPiece) {
      const auto n = static_cast<std::size_t>(std::min(kPiece, size() - at));
      ETSTREAM_TRY(data_.read_at(at * item_size(type_), std::span(bytes).first(n * item_size(type_))));
      for (std::size_t i = 0; i < n; ++i) {
        if (!see(at + i, number(bytes.data() + i * item_size(type_)))) return false;
      }
    }
    return true;
  }

 private:
  Numbers(ByteSource data, ScalarType type) : data_(std::move(data)), type_(type) {}

  [[nodiscard]] double number(const std::byte* from) const {
    const auto as = [&]<class T>(T value) {
      std::memcpy(&value, from, sizeof(value));
      return static_cast<double>(value);
    };
    switch (type_) {
      case ScalarType::kFloat64:
        return as(double{});
      case ScalarType::kInt64:
        return as(std::int64_t{});
      case ScalarType::kInt32:
        return as(std::int32_t{});
      case ScalarType::kInt16:
        return as(std::int16_t{});
      case ScalarType::kInt8:
        return as(std::int8_t{});
      default:
        return as(std::uint8_t{});
    }
  }

  ByteSource data_;
  ScalarType type_;
};

/// Returns whether all elements are those of an arithmetic sequence of integers, and how it goes on.
Result<std::string> as_sequence(const Numbers& numbers) {
  double first = 0;
  double step = 0;
  ETSTREAM_ASSIGN(const bool is_one, numbers.for_each([&](std::uint64_t i, double number) {
    if (i == 0) first = number;
    if (i == 1) step = number - first;
    return number == std::floor(number) && number == first + static_cast<double>(i) * step;
  }));
  if (!is_one || step == 0) return std::string();
  return text("numbers from {} in steps of {}", exact_text(first), exact_text(step));
}

/// Describes elements of one value, or of two of which one is 0, 1 or an extreme, as masks have.
Result<std::string> as_mask(const Numbers& numbers, bool is_float) {
  std::vector<double> values;
  ETSTREAM_ASSIGN(const bool is_mask, numbers.for_each([&](std::uint64_t, double number) {
    if (std::isnan(number)) return false;
    if (std::ranges::find(values, number) == values.end()) values.push_back(number);
    return values.size() <= 2;
  }));
  if (!is_mask) return std::string();
  if (values.size() == 1) {
    return text("the number {}{}", exact_text(values[0]), numbers.size() == 1 ? "" : " everywhere");
  }
  constexpr double kExtreme = 60000;  // that float16 has too
  const auto is_of_mask = [](double value) {
    return value == 0 || value == 1 || std::abs(value) >= kExtreme;
  };
  if (is_float && !(is_of_mask(values[0]) && is_of_mask(values[1]))) return std::string();
  return text("a mask of {} and {}", exact_text(values[0]), exact_text(values[1]));
}

/// Follows the angle of a column of cosines or sines, which grows by the same step each row, at most by 1.
/// Types of 16 bits know an angle badly, so that the step becomes exact only over many rows. Row 0, whose
/// angle is 0, is not to be seen.
class Angle {
 public:
  void see(std::uint64_t row, double value, bool is_cosine) {
    constexpr double kClear = 0.85;  // a value up to which it tells the angle well
    const bool is_clear = std::abs(value) < kClear;
    if (is_followed_ && !is_clear) return;
    const double angle = is_cosine ? std::acos(value) : std::asin(value);
    const auto number = static_cast<double>(row);
    if (!is_followed_) {
      step_ = std::abs(angle) / number;
      is_followed_ = is_clear;
      return;
    }
    // Two angles in each turn have this value; the one nearest to what is expected counts.
    constexpr double kTurn = 2 * std::numbers::pi;
    const double expected = step_ * number;
    const double other = is_cosine ? -angle : std::numbers::pi - angle;
    double nearest = angle + std::round((expected - angle) / kTurn) * kTurn;
    const double second = other + std::round((expected - other) / kTurn) * kTurn;
    if (std::abs(second - expected) < std::abs(nearest - expected)) nearest = second;
    step_ = nearest / number;
  }
  [[nodiscard]] double at(std::uint64_t row) const { return step_ * static_cast<double>(row); }
  [[nodiscard]] double step() const { return step_; }

 private:
  double step_ = 0;
  bool is_followed_ = false;
};

/// Describes rows i with cos(i * step) or sin(i * step), each column having a step of its own from 0 to 1.
Result<std::string> as_positions(const Numbers& numbers, std::uint64_t columns, bool are_cosines) {
  if (columns == 0 || columns > kMostColumns || numbers.size() / columns < 4) return std::string();
  constexpr double kTolerance = 0.0625;  // what bfloat16 and steps in float32 need
  std::vector<Angle> angles(static_cast<std::size_t>(columns));
  ETSTREAM_ASSIGN(const bool in_range, numbers.for_each([&](std::uint64_t i, double number) {
    if (!(std::abs(number) <= 1)) return false;
    if (i < columns) return number == (are_cosines ? 1 : 0);
    Angle& angle = angles[static_cast<std::size_t>(i % columns)];
    angle.see(i / columns, number, are_cosines);
    return angle.step() <= 1 + kTolerance;
  }));
  if (!in_range) return std::string();
  ETSTREAM_ASSIGN(const bool fits, numbers.for_each([&](std::uint64_t i, double number) {
    const double angle = angles[static_cast<std::size_t>(i % columns)].at(i / columns);
    return std::abs((are_cosines ? std::cos(angle) : std::sin(angle)) - number) <= kTolerance;
  }));
  if (!fits) return std::string();
  return std::string(are_cosines ? "cosines of positions" : "sines of positions");
}

constexpr std::size_t kMostFrequencies = 512;  // of heads of 1024
constexpr std::string_view kFrequencies = "inverse frequencies of RoPE";

/// A number as the sum of two float32, of which the second is the rest that the first leaves.
struct Pair {
  float high = 0;
  float low = 0;
};

Pair sum(float a, float b) {
  const float high = a + b;
  const float from_b = high - a;
  return {high, (a - (high - from_b)) + (b - from_b)};
}

Pair sum(Pair a, float b) {
  const Pair out = sum(a.high, b);
  return {out.high, out.low + a.low};
}

/// Takes the larger one first.
Pair sum(Pair a, Pair b) {
  const float high = a.high + b.high;
  return {high, a.high - high + b.high + a.low + b.low};
}

Pair product(Pair a, Pair b) {
  const float high = a.high * b.high;
  return {high, std::fma(a.high, b.low, std::fma(a.low, b.high, std::fma(a.high, b.high, -high)))};
}

Pair quotient(Pair a, Pair b) {
  const float inverse = 1 / b.high;
  const float high = a.high * inverse;
  const float rest = std::fma(-b.low, inverse, std::fma(-b.high, inverse, 1.0F));
  return {high, std::fma(high, rest, std::fma(a.low, inverse, std::fma(a.high, inverse, -high)))};
}

float polynomial(std::initializer_list<float> factors, float at) {
  float out = 0;
  for (const float factor : factors) out = std::fma(out, at, factor);
  return out;
}

/// Returns a product that no compiler joins with a sum.
float times(float a, float b) { return static_cast<float>(double{a} * double{b}); }

/// Returns base^exponent as the loops of torch that take vectors do: with the operations and the polynomials
/// of powf in SLEEF, at most 1.0 units in the last place off. `base` is over 1, `exponent` from 0 to 1.
float power_in_vectors(float base, float exponent) {
  int twos = 0;
  std::frexp(base * (1 / 0.75F), &twos);
  const float fraction = std::ldexp(base, 1 - twos);  // from 0.75 to 1.5
  const Pair x = quotient(sum(-1, fraction), sum(1, fraction));
  const Pair square = product(x, x);
  const float fifth = polynomial({0.240320355F, 0.285112679F, 0.400007993F}, square.high);
  const Pair rest_of_third = product(square, {fifth, 0});
  Pair third = sum(rest_of_third.high, 0.666666627F);
  third.low += rest_of_third.low + 3.69183861e-09F;
  Pair log = product({0.693147182F, -1.90465432e-09F}, {static_cast<float>(twos - 1), 0});
  log = sum(sum(log, {2 * x.high, 2 * x.low}), product(product(square, x), third));
  const Pair all = product(log, {exponent, 0});
  const float whole = std::nearbyint(times(all.high + all.low, 1.44269504F));
  Pair rest = sum(sum(all, times(whole, -0.693145752F)), times(whole, -1.42860677e-06F));
  rest = sum(rest.high, rest.low);
  const float half =
      polynomial({0.00136324647F, 0.00836596917F, 0.0416710824F, 0.166665524F, 0.49999985F}, rest.high);
  const Pair out = sum({1, 0}, sum(rest, product(product(rest, rest), {half, 0})));
  return std::ldexp(out.high + out.low, static_cast<int>(whole));
}

/// The parameters by which a model turns positions into angles.
struct Rope {
  std::string name;
  std::string type;  // "llama3"
  double theta = 0;
  double dim = 0;
  std::vector<double> factors = {};                             // of longrope
  std::function<double(std::string_view, double)> number = {};  // of config.json, or the default
};

/// Returns the frequencies with the operations of modeling_rope_utils.py in transformers 5, which are in
/// float32 but for what concerns all of them. The first `in_vectors` powers are those of vectors.
std::vector<float> frequencies(const Rope& rope, std::size_t in_vectors) {
  const double longest = rope.number("max_position_embeddings", 0);
  const double context = rope.number("original_max_position_embeddings", longest);
  const double all_factors = rope.number("factor", rope.type == "yarn" ? longest / context : 1);
  const double slowest = rope.number("low_freq_factor", 1);
  const double fastest = rope.number("high_freq_factor", 4);
  const auto dimension_of = [&](double turns) {
    const double log = std::log(context / (turns * 2 * std::numbers::pi));
    return rope.dim * log / (2 * std::log(rope.theta));
  };
  double low = dimension_of(rope.number("beta_fast", 32));
  double high = dimension_of(rope.number("beta_slow", 1));
  if (rope.number("truncate", 1) != 0) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.dim - 1);
  if (low == high) high += 0.001;
  const auto base = static_cast<float>(rope.theta);
  const auto factor = static_cast<float>(all_factors);
  std::vector<float> out(static_cast<std::size_t>(rope.dim / 2));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope.dim);
    const float power = i < in_vectors ? power_in_vectors(base, exponent) : std::pow(base, exponent);
    out[i] = 1 / power;
    if (rope.type == "linear") out[i] /= factor;
    if (rope.type == "longrope") out[i] = 1 / (static_cast<float>(rope.factors[i]) * power);
    if (rope.type == "llama3") {
      const float length = 1 / out[i] * static_cast<float>(2 * std::numbers::pi);
      const bool is_short = length < static_cast<float>(context / fastest);
      const bool is_long = length > static_cast<float>(context / slowest);
      if (is_long) out[i] /= factor;
      if (is_short || is_long) continue;
      const float from_slowest = times(1 / length, static_cast<float>(context)) - static_cast<float>(slowest);
      const float smooth = from_slowest / static_cast<float>(fastest - slowest);
      out[i] = times(1 - smooth, out[i]) / factor + times(smooth, out[i]);
    }
    if (rope.type == "yarn") {
      const float place = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
      const float kept = 1 - std::clamp(place, 0.0F, 1.0F);
      out[i] = times(1 / (factor * power), 1 - kept) + times(1 / power, kept);
    }
  }
  return out;
}

/// Adds the frequencies in each way in which torch may have computed them: it takes two vectors of 4, 8 or 16
/// numbers at once, and what is left, or all, by the C library.
void add_frequencies(const Rope& rope, std::vector<CheckpointTensor>& out) {
  constexpr std::string_view kTypes[] = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};
  const double count = rope.dim / 2;
  if (std::ranges::find(kTypes, rope.type) == std::end(kTypes) || !(rope.theta > 1 && rope.theta < 1e30) ||
      !(count >= 1 && count <= kMostFrequencies) || count != std::floor(count) ||
      (rope.type == "longrope" && static_cast<double>(rope.factors.size()) != count)) {
    return;
  }
  const auto all = static_cast<std::size_t>(count);
  for (const std::size_t in_vectors :
       std::set<std::size_t, std::greater<>>{all - all % 8, all - all % 16, all - all % 32, 0}) {
    const std::vector<float> numbers = frequencies(rope, in_vectors);
    const auto bytes = std::as_bytes(std::span(numbers));
    out.push_back(
        {in_vectors == all ? rope.name : text("{}, {} of {} in vectors", rope.name, in_vectors, all), "F32",
         TensorLayout{ScalarType::kFloat32, {static_cast<std::int32_t>(all)}, {0}},
         ByteSource::owned({bytes.begin(), bytes.end()})});
  }
}

/// The numbers and words of config.json by their paths: ".rope_parameters.factor".
struct ConfigValues {
  std::map<std::string, std::vector<double>, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> words;
};

Result<void> read_values(JsonReader& json, const std::string& path, ConfigValues& out) {
  using Kind = JsonReader::Kind;
  const Kind kind = json.next().kind;
  if (kind == Kind::kArray) return json.elements([&] { return read_values(json, path, out); });
  if (kind == Kind::kObject) {
    return json.members(
        [&](std::string_view key) { return read_values(json, text("{}.{}", path, key), out); });
  }
  const JsonTape::Value value = json.take();
  if (kind == Kind::kString) out.words[path] = value.string;
  if (kind == Kind::kInteger) out.numbers[path].push_back(static_cast<double>(value.integer));
  if (kind == Kind::kDouble) out.numbers[path].push_back(value.number);
  if (kind == Kind::kBool) out.numbers[path].push_back(value.boolean ? 1 : 0);
  return {};
}

/// Returns nothing if `config` does not say them. Layers of several kinds have parameters for each.
std::optional<std::vector<CheckpointTensor>> frequencies_by(const ConfigValues& config) {
  const std::string scope = config.numbers.contains(".text_config.hidden_size") ? ".text_config" : "";
  std::map<std::string, std::string> paths;  // of parameters, by the kind of layers
  for (const std::string& object : {scope + ".rope_parameters.", scope + ".rope_scaling."}) {
    for (const auto& [path, number] : config.numbers) {
      if (!path.starts_with(object)) continue;
      const std::string own = path.substr(0, path.rfind('.') + 1);
      paths.emplace(own.substr(object.size()), own);
    }
  }
  if (paths.empty() && config.numbers.contains(scope + ".rope_theta")) paths = {{"", scope + "."}};
  if (paths.empty()) return std::nullopt;
  std::vector<CheckpointTensor> out;
  for (const auto& [kind, own] : paths) {
    const auto number = [&, own = own](std::string_view name, double other) {
      for (const std::string& from : {own, scope + "."}) {
        const auto found = config.numbers.find(from + std::string(name));
        if (found != config.numbers.end()) return found->second.back();
      }
      return other;
    };
    Rope rope{std::string(kFrequencies), "default", number("rope_theta", 10000)};
    rope.number = number;
    for (const char* name : {"type", "rope_type"}) {
      if (const auto found = config.words.find(own + name); found != config.words.end())
        rope.type = found->second;
    }
    if (!kind.empty()) rope.name += text(" of {}", kind.substr(0, kind.size() - 1));
    if (number("rope_theta", 0) == 0) rope.name += ", theta 10000 by default";
    const double head =
        number("head_dim", std::floor(number("hidden_size", 0) / number("num_attention_heads", 1)));
    rope.dim = std::floor(head * number("partial_rotary_factor", 1));
    if (rope.type == "dynamic") {
      const double factor = number("factor", 1);
      const double longest = number("max_position_embeddings", 1);
      rope.theta *= std::pow(factor * longest / longest - (factor - 1), rope.dim / (rope.dim - 2));
    }
    if (rope.type != "longrope") add_frequencies(rope, out);
    for (const std::string name : {"short_factor", "long_factor"}) {
      const auto found = config.numbers.find(own + name);
      if (rope.type != "longrope" || found == config.numbers.end()) continue;
      Rope one = rope;
      one.name += text(", {}", name);
      one.factors = found->second;
      add_frequencies(one, out);
    }
  }
  return out;
}

}  // namespace

Result<std::string> describe_weight_free(const ByteSource& data, const TensorLayout& layout) {
  const auto numbers = Numbers::open(data, layout.scalar_type);
  if (!numbers) return std::string();
  if (numbers->size() == 0) return std::string("no elements");
  const bool is_float = is_floating_point(layout.scalar_type);
  ETSTREAM_ASSIGN(std::string out, as_mask(*numbers, is_float));
  if (out.empty()) {
    ETSTREAM_ASSIGN(out, as_sequence(*numbers));
  }
  // Quantizers of ExecuTorch store no weights in 64 bits.
  if (out.empty() && layout.scalar_type == ScalarType::kInt64) out = "integers of 64 bits";
  if (!is_float || layout.sizes.empty()) return out;
  for (const bool are_cosines : {true, false}) {
    if (!out.empty()) break;
    const auto columns = static_cast<std::uint64_t>(std::max(layout.sizes.back(), 0));
    ETSTREAM_ASSIGN(out, as_positions(*numbers, columns, are_cosines));
  }
  return out;
}

Result<std::optional<std::vector<CheckpointTensor>>> read_frequencies(const Checkpoint& checkpoint) {
  std::optional<std::vector<CheckpointTensor>> none;
  if (checkpoint.files.empty()) return none;
  const auto file = ByteSource::file(folder_of(checkpoint.files.front()) + "config.json");
  if (!file) return file.error().code == ErrorCode::kNotFound ? Result(std::move(none)) : file.error();
  ConfigValues values;
  ETSTREAM_TRY(
      read_json(*file, ErrorCode::kCorrupt, [&](JsonReader& json) { return read_values(json, "", values); }));
  return frequencies_by(values);
}

Result<std::vector<CheckpointTensor>> frequencies_like(const ByteSource& data) {
  std::vector<CheckpointTensor> out;
  std::vector<float> numbers(
      static_cast<std::size_t>(std::min<std::uint64_t>(data.size() / sizeof(float), kMostFrequencies + 1)));
  if (numbers.size() < 2 || numbers.size() > kMostFrequencies) return out;
  ETSTREAM_TRY(data.read_at(0, std::as_writable_bytes(std::span(numbers))));
  if (!std::ranges::is_sorted(numbers, std::greater())) return out;
  const auto rounded = [](double number) {
    const double unit = std::pow(10, std::floor(std::log10(number)) - 3);
    return std::round(number / unit) * unit;
  };
  const double factor = rounded(1 / double{numbers.front()});
  const auto count = static_cast<double>(numbers.size());
  const double theta = rounded(std::pow(factor * double{numbers.back()}, count / (1 - count)));
  add_frequencies({std::string(kFrequencies),
                   "linear",
                   theta,
                   2 * count,
                   {},
                   [&](std::string_view name, double other) { return name == "factor" ? factor : other; }},
                  out);
  return out;
}

}  // namespace etstream
