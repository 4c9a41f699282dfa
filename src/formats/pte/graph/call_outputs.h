// SPDX-License-Identifier: BSD-3-Clause
//
// The arguments that a call writes, by the rules at ProgramGraph.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "etstream/program_graph.h"

namespace etstream {

/// The contents of a graph's values between two calls.
class ValueContents {
 public:
  /// Begins before the first call. All values of `graph`, which outlives this, exist already.
  explicit ValueContents(const ProgramGraph& graph);

  void write(std::uint32_t value);
  [[nodiscard]] bool is_written(std::uint32_t value) const { return written_[value]; }
  /// Returns the value that was last written at the planned memory of `value`, which itself was not written;
  /// nothing unless both have the same size.
  [[nodiscard]] std::optional<std::uint32_t> shown_by(std::uint32_t value) const;

 private:
  void hold(std::uint32_t value);

  const ProgramGraph& graph_;
  std::vector<bool> written_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> holders_;  // by memory and offset
};

/// Sets the inputs and outputs of `call`, a kernel's or a delegate's, whose args are in range.
void split_arguments(const ProgramGraph& graph, const ValueContents& contents, GraphCall& call);

}  // namespace etstream
