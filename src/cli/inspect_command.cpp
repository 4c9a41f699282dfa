// SPDX-License-Identifier: BSD-3-Clause
//
// etstream inspect FILE
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_report.h"
#include "etstream/inspect.h"

namespace etstream::cli {
namespace {

/// A person reads no more; --json has all.
constexpr std::size_t kMostParts = 60;

struct InspectArguments {
  std::string file;
  bool json = false;
};

std::vector<std::string> described(const std::vector<ValueInfo>& values) {
  std::vector<std::string> out;
  out.reserve(values.size());
  for (const ValueInfo& value : values) out.push_back(describe(value));
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

nlohmann::ordered_json inspection_to_json(const std::string& file, const FileInspection& found) {
  nlohmann::ordered_json out = {{"file", file},
                                {"format", found.format},
                                {"size", found.size},
                                {"version", found.version},
                                {"metadata_size", found.metadata_size},
                                {"bytes_read", found.bytes_read},
                                {"parts", nlohmann::ordered_json::array()},
                                {"methods", nlohmann::ordered_json::array()},
                                {"suites", nlohmann::ordered_json::array()}};
  for (const FilePart& part : found.parts) {
    out["parts"].push_back(
        {{"name", part.name}, {"offset", part.offset}, {"size", part.size}, {"alignment", part.alignment}});
  }
  for (const MethodInfo& method : found.methods) {
    out["methods"].push_back({{"name", method.name},
                              {"inputs", described(method.inputs)},
                              {"outputs", described(method.outputs)}});
  }
  for (const auto& suite : found.suites) {
    out["suites"].push_back({{"method", suite.method_name}, {"test_cases", suite.test_cases}});
  }
  return out;
}

void print_row(const FileInspection& found, std::uint64_t offset, std::uint64_t size, std::uint64_t alignment,
               const std::string& name) {
  const double share =
      found.size == 0 ? 0 : 100 * static_cast<double>(size) / static_cast<double>(found.size);
  std::printf("%14" PRIu64 " %14" PRIu64 " %6" PRIu64 " %5.1f%%  %s\n", offset, size, alignment, share,
              name.c_str());
}

const char* described_format(const std::string& format) {
  if (format == "program") return "program (ET12)";
  if (format == "tensor_data") return "named data (FT01)";
  return format == "segmented_bundle" ? "segmented bundle (BPS1)" : "bundled program (BP08)";
}

void print_inspection(const std::string& file, const FileInspection& found) {
  std::printf("%s: %s, version %" PRIu32 ", %s (%" PRIu64 " bytes)\n\n", file.c_str(),
              described_format(found.format), found.version, readable_size(found.size).c_str(), found.size);
  std::printf("%14s %14s %6s %6s  %s\n", "offset", "size", "align", "share", "what");
  const std::size_t rows = std::min(kMostParts, found.parts.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const FilePart& part = found.parts[i];
    print_row(found, part.offset, part.size, part.alignment, part.name);
  }
  if (rows < found.parts.size()) {
    std::printf("%14s and %s; --json lists all\n", "...",
                counted(found.parts.size() - rows, "more part").c_str());
  }
  std::printf(
      "%14s %14" PRIu64 " %6s %5.1f%%  tables around them and padding\n", "", found.metadata_size, "",
      found.size == 0 ? 0 : 100 * static_cast<double>(found.metadata_size) / static_cast<double>(found.size));
  for (const MethodInfo& method : found.methods) {
    std::printf("\nmethod %s\n  inputs:  %s\n  outputs: %s\n", method.name.c_str(),
                joined(described(method.inputs)).c_str(), joined(described(method.outputs)).c_str());
  }
  if (!found.suites.empty()) std::printf("\n");
  for (const auto& suite : found.suites) {
    std::printf("test suite of %s: %s\n", suite.method_name.c_str(),
                counted(suite.test_cases, "case").c_str());
  }
}

Result<void> inspect_command(const InspectArguments& arguments) {
  ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(arguments.file));
  ETSTREAM_ASSIGN(const FileInspection found, inspect(file));
  if (arguments.json) {
    print_json(inspection_to_json(arguments.file, found));
  } else {
    print_inspection(arguments.file, found);
  }
  return {};
}

}  // namespace

void add_inspect_command(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a program, a bundle or a .ptd file consists of");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("FILE", arguments->file, "The file to look into")->required();
  command->add_flag("--json", arguments->json, "Show it as JSON");
  command->callback([arguments, &run] { run = [arguments] { return inspect_command(*arguments); }; });
}

}  // namespace etstream::cli
