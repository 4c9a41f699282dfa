// SPDX-License-Identifier: BSD-3-Clause
#include "files/output_names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "core/base/text.h"

namespace etstream {
namespace {

constexpr std::string_view kOutputEndings[] = {".bin", ".raw", ".npy"};

/// Takes the number at the end of `words` from it.
std::optional<std::uint64_t> take_number(std::string_view& words) {
  const std::size_t digits = words.size() - (words.find_last_not_of("0123456789") + 1);
  const auto number = read_number(words.substr(words.size() - digits));
  words.remove_suffix(digits);
  return number;
}

}  // namespace

std::optional<std::uint64_t> read_number(std::string_view digits) {
  constexpr std::size_t kMost = 9;
  if (digits.empty() || digits.size() > kMost) return std::nullopt;
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return out;
}

std::optional<OutputName> read_output_name(std::string_view name) {
  const auto* const ending =
      std::ranges::find_if(kOutputEndings, [&](std::string_view one) { return name.ends_with(one); });
  if (ending == std::end(kOutputEndings)) return std::nullopt;
  std::string_view left = name.substr(0, name.size() - ending->size());
  const auto output = take_number(left);
  if (!output) return std::nullopt;
  OutputName out{.output = *output, .is_array = *ending == ".npy", .series = std::string(left) + "N"};
  constexpr std::string_view kOutput = "output_";
  const bool has_base = left.size() > 1 && left.ends_with('-');
  if (left.empty() || has_base || left == kOutput) return out;
  if (!left.ends_with('_')) return std::nullopt;
  if (left.starts_with(kOutput)) {
    out.test_case = read_number(left.substr(kOutput.size(), left.size() - kOutput.size() - 1));
    if (out.test_case) return out;
  }
  if (!left.ends_with("_output_")) return std::nullopt;
  left.remove_suffix(kOutput.size() + 1);
  out.test_case = take_number(left);
  if (!out.test_case || left.size() < 2 || !left.ends_with('_')) return std::nullopt;
  out.label = left.substr(0, left.size() - 1);
  return out;
}

bool is_beside_outputs(std::string_view name) {
  constexpr std::string_view kInput = "_input_";
  const std::size_t at = name.rfind(kInput);
  if (at == std::string_view::npos) return name == "cases.json";
  const auto output =
      read_output_name(text("{}_output_{}", name.substr(0, at), name.substr(at + kInput.size())));
  return output && !output->label.empty();
}

}  // namespace etstream
