// SPDX-License-Identifier: BSD-3-Clause
//
// A method's graph on standard output, for Graphviz and for programs.
#pragma once

#include "etstream/program_graph.h"

namespace etstream::cli {

/// In the DOT language: a box a call, an ellipse a value that is a tensor or that a call writes. Lists are
/// drawn as their items.
void print_dot(const ProgramGraph& graph);

/// All of it: {"method", "inputs", "outputs", "memory_sizes", "operators", "delegates", "values", "calls"};
/// values and calls are named by their places in these lists.
void print_graph_json(const ProgramGraph& graph);

}  // namespace etstream::cli
