// SPDX-License-Identifier: BSD-3-Clause
//
// Reports of what the library finds, which the command and Python print and write: JSON, text, and pages for
// a browser.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint.h"
#include "etstream/diff.h"
#include "etstream/inspect.h"
#include "etstream/profile.h"
#include "etstream/program.h"
#include "etstream/program_plan.h"
#include "etstream/program_weights.h"
#include "etstream/result.h"
#include "etstream/reweight.h"
#include "etstream/sink.h"
#include "etstream/verify.h"
#include "present/json.h"

namespace etstream {

// check_reports.cpp

/// Returns the messages with their advice in these words.
[[nodiscard]] std::vector<std::string> full_messages(const std::vector<Finding>& findings, TermWords words);
/// Returns {"errors": [MESSAGE...], "warnings": [MESSAGE...]}, with advice in these words.
[[nodiscard]] Json findings_to_json(const Findings& findings, TermWords words);
/// Returns each run as docs/command/reports.md describes it below "verify".
[[nodiscard]] Json runs_to_json(const std::vector<MethodRun>& runs);
/// Prints each run on standard output: a line for its end, with advice in these words and with that option,
/// and one for each output.
void print_runs(const std::string& file, const std::vector<MethodRun>& runs, TermWords words,
                std::string_view tolerance);
/// Keeps only the differences of content.
void ignore_layout(FileDiff& found);
/// `a` and `b` are what the report calls the files.
[[nodiscard]] Json differences_to_json(const std::string& a, const std::string& b, const FileDiff& found);

// inspect_report.cpp

/// Describes values for people: "float32 [1, 3]".
[[nodiscard]] std::vector<std::string> described(const std::vector<ValueInfo>& values);
/// Returns a payload as an inspection has it.
[[nodiscard]] Json payload_to_json(const InspectedPayload& payload);
/// Returns an inspection as JSON. `file` is what the report calls the file. `duplicates` adds the duplicates.
/// `words` are those of advice.
[[nodiscard]] Json inspection_to_json(const std::string& file, const FileInspection& found, bool duplicates,
                                      TermWords words);
/// Plans a page: one file that needs no other, nor a network. `name` is what it calls the file, which is of
/// any format that etstream knows. Reads the metadata, payloads whose size others share, samples of the
/// others, and what verify() reads. `names` are the names for the keys of named data, and `words` are those
/// of advice. Errors: those of inspect(), verify() and estimate_coded_sizes().
[[nodiscard]] Result<FilePlan> plan_inspect_page(const ByteSource& file, const std::string& name,
                                                 const KeyNames& names, TermWords words);
/// Plans the page of the file that a path stands for. Without names, it uses those of
/// read_key_names_beside(). Error: kInvalidArgument if the path stands for several files.
[[nodiscard]] Result<FilePlan> plan_inspect_page(const std::string& path, const KeyNames& names,
                                                 TermWords words,
                                                 const OpenFile& open_file = &ByteSource::file);

/// Returns a plan as docs/command/common.md describes it. `memory` is how many bytes of it writing takes.
[[nodiscard]] Json plan_to_json(const FilePlan& plan, std::uint64_t memory);

// profile_report.cpp

[[nodiscard]] Json profile_to_json(const Profile& profile);
/// Returns a page of a profile: one file that needs no other, nor a network. `before`, unless null, is an
/// earlier profile that the page compares it with. Both are JSON that read_profile() takes. The page draws
/// `limits` of the whole command, in bytes, and shows the `verdict` on all limits, line by line.
[[nodiscard]] std::string profile_page(const std::string& profile, const std::string* before,
                                       const std::vector<std::uint64_t>& limits,
                                       const std::vector<std::string>& verdict);
/// Prints a profile for people on standard error.
void print_profile(const Profile& profile);
/// Says how a command ended that a signal, or the kernel at the limit of its control group, has ended, where
/// it was, and what it had; empty for another end.
[[nodiscard]] std::string end_of_command(const Profile& profile);
/// Says why a profile is of a part of the work: a signal ended the command, or it failed; empty if it did
/// not.
[[nodiscard]] std::string failure_of(const Profile& profile);
/// Prints a table of two profiles, phase by phase, on standard output; or returns it in Markdown, behind the
/// lines of a verdict.
void print_comparison(const Profile& before, const Profile& after);
[[nodiscard]] std::string comparison_markdown(const Profile& before, const Profile& after,
                                              const std::vector<std::string>& verdict = {});

// program_reports.cpp

/// Returns a budget as docs/command/reports.md describes it. `file` is what the report calls the file.
[[nodiscard]] Json budget_to_json(const std::string& file, const MemoryBudget& budget);
/// Prints a budget on standard output.
void print_budget(const std::string& file, const MemoryBudget& budget);
/// Returns the sizes of pools as definitions in C.
[[nodiscard]] std::string budget_to_c(const MemoryBudget& budget);

/// Returns the graph in the DOT language: a box for each call, an ellipse for each value that is a tensor or
/// that a call writes. Lists are drawn as their items.
[[nodiscard]] std::string graph_to_dot(const ProgramGraph& graph);
/// Passes the whole graph to `take` as JSON that ends with a line end, in pieces, in order: {"method",
/// "inputs", "outputs", "memory_sizes", "operators", "delegates", "values", "calls"}; values and calls are
/// named by their places in these lists.
void write_graph_json(const ProgramGraph& graph, const std::function<void(std::string_view)>& take);

// weight_reports.cpp

/// Prints the origins of payloads on standard output.
void print_origins(const WeightOrigins& origins);
/// Returns them as docs/command/weights.md describes it.
[[nodiscard]] Json origins_to_json(const WeightOrigins& origins);

/// Prints what programs share on standard output, with what stays as sums by program and reason.
void print_sharing(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan);
/// Returns the whole report: {"size_before", "size_after", "programs", "shared", "kept", "renamed"}, and
/// "weights" if something is shared.
[[nodiscard]] Json sharing_to_json(const std::vector<SharingInput>& before, const SharedWeightsPlan& plan);

}  // namespace etstream
