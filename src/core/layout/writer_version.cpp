// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/sink.h"

#include <array>
#include <charconv>
#include <optional>

#include "core/base/text.h"

namespace etstream {
namespace {

using Version = std::array<std::uint32_t, 3>;  // numbers that are not given are 0

constexpr Version kSharesOfEqualSize = {25, 12, 19};

/// Returns the numbers that a version begins with: at least two, and a third if there is one.
std::optional<Version> parse(std::string_view text) {
  Version out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out[i]);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty() || text.front() != '.') return i == 0 ? std::nullopt : std::optional(out);
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

Result<ExecutorchRelease> executorch_release(std::string_view version) {
  const auto found = parse(version);
  if (!found || (*found)[0] != 1 || (*found)[1] > static_cast<std::uint32_t>(kLatestRelease)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "expected a release of ExecuTorch from 1.0 to {}, found {}", name_of(kLatestRelease),
                      quote(version));
  }
  return static_cast<ExecutorchRelease>((*found)[1]);
}

std::string name_of(ExecutorchRelease release) { return text("1.{}", static_cast<int>(release)); }

Result<VtableSharing> vtable_sharing(std::string_view flatbuffers_version) {
  const auto found = parse(flatbuffers_version);
  if (!found) {
    return make_error(ErrorCode::kInvalidArgument,
                      "expected a version of flatbuffers such as 25.12.19, found {}",
                      quote(flatbuffers_version));
  }
  return *found < kSharesOfEqualSize ? VtableSharing::kOfAnySize : VtableSharing::kOfEqualSize;
}

}  // namespace etstream
