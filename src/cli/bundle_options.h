// SPDX-License-Identifier: BSD-3-Clause
//
// What the commands that write a bundle have in common on their command lines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/output_options.h"
#include "etstream/bundled_program.h"

namespace etstream::cli {

/// The formats of a bundle; BP08 comes first.
inline const std::vector<std::string> kFormats = {"bp08", "segmented"};

struct BundleOptions : OutputOptions {
  std::string format = kFormats.front();
  bool no_hash = false;

  [[nodiscard]] BundleFormat bundle_format() const {
    return format == kFormats.front() ? BundleFormat::kBp08 : BundleFormat::kSegmented;
  }
};

void add_bundle_path(CLI::App& command, BundleOptions& options);
CLI::Option* add_format(CLI::App& command, const std::string& name, BundleOptions& options);
void add_hash_flag(CLI::App& command, BundleOptions& options);

}  // namespace etstream::cli
