// SPDX-License-Identifier: BSD-3-Clause
//
// A method's graph as text, for Graphviz and for programs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "etstream/program_graph.h"

namespace etstream {

/// In the DOT language: a box a call, an ellipse a value that is a tensor or that a call writes. Lists are
/// drawn as their items.
[[nodiscard]] std::string graph_to_dot(const ProgramGraph& graph);

/// All of it as JSON that ends with a line end, in pieces that `take` gets in order: {"method", "inputs",
/// "outputs", "memory_sizes", "operators", "delegates", "values", "calls"}; values and calls are named by
/// their places in these lists.
void write_graph_json(const ProgramGraph& graph, const std::function<void(std::string_view)>& take);

}  // namespace etstream
