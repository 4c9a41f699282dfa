// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <vector>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "cli/words.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/packed_file.h"
#include "etstream/sink.h"
#include "etstream/tensor_data.h"
#include "etstream/write_files.h"
#include "present/print.h"
#include "present/reports.h"

namespace etstream::cli {
namespace {

bool have_appeared = false;

/// The memory that the command takes before it writes: its data, and the pages of files that readers keep.
/// Measured 0.5 to 1.3 MiB.
constexpr std::uint64_t kOwnMemory = std::uint64_t{3} << 19;

/// Returns the memory of this process in bytes that no file backs; 0 if the system doesn't tell.
std::uint64_t own_anonymous_memory() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kibibytes = 0;
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") status >> kibibytes;
  }
  return kibibytes << 10;
}

Progress plain_progress() {
  return [bar = std::make_shared<ProgressBar>()](std::uint64_t done, std::uint64_t total) {
    bar->show(done, total);
    return true;
  };
}

/// Returns where standard output goes, for a plan that may go to a terminal if it is text.
Result<std::unique_ptr<Sink>> open_standard_output(bool is_text) {
  if (!is_text && standard_output_is_a_terminal()) {
    return with_advice(make_error(ErrorCode::kInvalidArgument, "the output is binary and not for a terminal"),
                       {"send it to a file or into a pipe"});
  }
  return open_descriptor_sink(kStandardOutput, "standard output");
}

/// Returns the outputs as the library takes them.
std::vector<OutputFile> files_of(const std::vector<Output>& outputs) {
  std::vector<OutputFile> out;
  for (const Output& output : outputs) {
    OutputFile& file =
        out.emplace_back(OutputFile{.plan = output.plan, .path = output.path, .write = output.write});
    if (!is_standard_output(output.path)) continue;
    file.open = [is_text = output.is_text] { return open_standard_output(is_text); };
    file.changes = identity_of("/dev/stdout");
  }
  return out;
}

WriteFilesOptions write_options(const CommonOptions& options, const std::string& folder) {
  const auto progress = [](bool is_stream) {
    return is_stream ? plain_progress() : interruptible_progress();
  };
  return {.sync = !options.no_sync,
          .warn = warn,
          .max_disk = options.max_disk,
          .folder = folder,
          .progress = progress};
}

/// Returns the memory in bytes that packing takes, if an output is packed. Files are written one after
/// another, so one packs at a time.
std::uint64_t memory_to_pack(const std::vector<Output>& outputs) noexcept {
  const bool packs = std::ranges::any_of(outputs, [](const Output& output) {
    return output.plan != nullptr && output.path.ends_with(kPackedSuffix) && !is_stream(output.path);
  });
  return packs ? packing_memory() : 0;
}

}  // namespace

bool is_standard_output(const std::string& path) { return path == "-" || leads_to_standard_output(path); }

Result<std::unique_ptr<Sink>> open_output(const std::string& path, const FileSinkOptions& options,
                                          bool is_text) {
  return is_standard_output(path) ? open_standard_output(is_text) : open_file_sink(path, options);
}

Progress interruptible_progress() {
  struct State {
    const CaughtInterrupts caught;
    ProgressBar bar;
  };
  return [state = std::make_shared<State>()](std::uint64_t done, std::uint64_t total) {
    state->bar.show(done, total);
    return !interrupted();
  };
}

std::uint64_t planned_memory(const std::vector<Output>& outputs) {
  std::vector<const FilePlan*> plans;
  for (const Output& output : outputs) {
    if (output.plan != nullptr) plans.push_back(output.plan);
  }
  return kOwnMemory + memory_to_write(plans) + memory_to_pack(outputs);
}

namespace {

/// Checks what is the command's own: the limit of memory, and that standard output takes one output.
Result<void> check_own(const std::vector<Output>& outputs, const CommonOptions& options) {
  // The data from which the plans were made is in memory too. With many small payloads it takes more than
  // they do.
  const std::uint64_t held = own_anonymous_memory() + memory_to_write({}) + memory_to_pack(outputs);
  const std::uint64_t memory = std::max(planned_memory(outputs), held);
  if (options.max_memory && memory > *options.max_memory) {
    return with_advice(
        make_error(ErrorCode::kTooLarge, "writing takes {} ({} bytes) of memory, over --max-memory {}",
                   readable_size(memory), memory, readable_size(*options.max_memory)),
        {text("--max-memory {} would fit", limit_for(memory))});
  }
  if (std::ranges::count_if(outputs, is_standard_output, &Output::path) > 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "two outputs are to be standard output; give each a name of its own");
  }
  return {};
}

}  // namespace

Result<void> check_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                           const std::string& folder) {
  ETSTREAM_TRY(check_own(outputs, options));
  return check_files(files_of(outputs), write_options(options, folder));
}

Result<void> write_outputs(const std::vector<Output>& outputs, const CommonOptions& options,
                           const std::string& folder) {
  if (options.dry_run) return check_outputs(outputs, options, folder);
  ETSTREAM_TRY(check_own(outputs, options));
  let_writes_fail();
  const auto is_standard = [](const Output& output) { return is_standard_output(output.path); };
  if (std::ranges::any_of(outputs, is_standard)) leave_out_reports();
  ETSTREAM_TRY(write_files(files_of(outputs), write_options(options, folder)));
  have_appeared = std::ranges::any_of(
      outputs, [&](const Output& one) { return !is_standard(one) && !is_stream(one.path); });
  return {};
}

bool outputs_have_appeared() { return have_appeared; }

void warn(const Finding& warning) {
  complain("warning: {}\n", one_line(full_message(warning, option_words)));
}

void print(const Findings& findings, std::size_t most) {
  std::size_t found = 0;
  for (const Finding& error : findings.errors) {
    if (found++ < most) complain("error: {}\n", one_line(full_message(error, option_words)));
  }
  for (const Finding& warning : findings.warnings) {
    if (found++ < most) warn(warning);
  }
  if (found > most) complain("... and {}; --json lists all\n", counted(found - most, "more problem"));
}

FileSinkOptions file_options(bool sync) { return {.sync = sync, .warn = warn}; }

namespace {

constexpr std::size_t kMostExtents = 40;

/// Returns the extents that a table shows: the largest, in file order.
std::vector<const Extent*> rows_of(const FilePlan& plan) {
  std::vector<const Extent*> rows;
  for (const Extent& extent : plan.extents) rows.push_back(&extent);
  if (rows.size() <= kMostExtents) return rows;
  std::ranges::nth_element(rows, rows.begin() + kMostExtents, std::greater{}, &Extent::size);
  rows.resize(kMostExtents);
  std::ranges::sort(rows, {}, &Extent::offset);
  return rows;
}

void print_table(const Output& output) {
  const FilePlan& plan = *output.plan;
  const auto rows = rows_of(plan);
  say("{:>14} {:>14} {:>6}  {:24} {}\n", "offset", "size", "align", "what", "from");
  for (const Extent* extent : rows) {
    std::string label = plan.label(*extent);
    label.resize(std::max(label.size(), std::size_t{24}), ' ');
    say("{:14} {:14} {:6}  {} {}\n", extent->offset, extent->size(), extent->alignment, label,
        extent->source.name());
  }
  if (rows.size() < plan.extents.size()) {
    say("... and {}, none larger; --json lists all\n",
        counted(plan.extents.size() - rows.size(), "smaller extent"));
  }
  const bool is_packed = output.path.ends_with(kPackedSuffix);
  say("{} ({} bytes) in all, {} of it metadata{}; writing takes about {} of memory\n",
      readable_size(plan.size), plan.size, readable_size(plan.metadata_size),
      is_packed ? "; it is packed, to 0.1 % more than that at most" : "",
      readable_size(planned_memory({output})));
}

Json json_of(const Output& output) { return plan_to_json(*output.plan, planned_memory({output})); }

/// Prints a table of the extents of the plan, the longest 40 of them; as JSON all. The files that are written
/// with it follow in the same form, in JSON under "tensor_data", a list if there are several. Of one with
/// words, such as params.json, there is a line, in JSON its path under "params". Errors: those of
/// check_outputs(), once all is shown.
Result<void> show_plan(const FilePlan& plan, const OutputOptions& options,
                       const std::vector<Output>& outputs) {
  std::vector<Output> beside = outputs;
  std::erase_if(beside, [&](const Output& one) { return one.plan == &plan; });
  const bool is_params = !beside.empty() && !beside.front().words.empty();
  if (options.json) {
    Json report = json_of({&plan, options.output});
    Json files;
    for (const Output& one : beside) files.push_back(json_of(one));
    if (is_params) report.add("params", beside.front().path);
    if (!is_params) report.add("tensor_data", beside.size() == 1 ? json_of(beside.front()) : files);
    print_json(report);
  } else {
    print_table({&plan, options.output});
    if (is_params) say("{}: {}\n", beside.front().path, beside.front().words);
    for (std::size_t i = 0; i < beside.size() && !is_params; ++i) {
      say("\nthe tensor data:\n");
      print_table(beside[i]);
    }
  }
  if (is_params && options.output.empty()) beside.clear();  // its path is that of no output
  beside.push_back({&plan, options.output});
  return check_outputs(beside, options);
}

}  // namespace

Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options,
                           const std::vector<Output>& outputs, const Json& more) {
  if (options.dry_run) return show_plan(plan, options, outputs);
  ETSTREAM_TRY(write_outputs(outputs, options));
  if (options.json) {
    Json report = {{"output", options.output}, {"size", plan.size}};
    report.update(more);
    print_json(report);
  } else {
    for (const Output& one : outputs) {
      say("{}: {}\n", one.path, one.words.empty() ? readable_size(one.plan->size) : one.words);
    }
  }
  return {};
}

Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options, const std::string& words,
                           const Json& more) {
  return show_or_write(plan, options, {{.plan = &plan, .path = options.output, .words = words}}, more);
}

Result<void> show_or_write(const FilePlan& plan, const OutputOptions& options, const std::string& noun,
                           std::size_t count) {
  return show_or_write(plan, options, text("{}, {}", counted(count, noun), readable_size(plan.size)),
                       {{noun + "s", count}});
}

std::uint64_t TensorDataOutput::size() const {
  std::uint64_t out = 0;
  for (const File& file : files) out += file.plan.size;
  return out;
}

std::vector<Output> TensorDataOutput::outputs() const {
  std::vector<Output> out;
  out.reserve(files.size());
  for (const File& file : files) out.push_back({&file.plan, is_named ? file.path : std::string()});
  return out;
}

Option add_split_option(CLI::App& command, std::optional<std::uint64_t>& most) {
  return add_size(
      command, "--split-max-size", most,
      "Write several files, NAME-00001-of-00003.ptd, with at most this much data each, such as 2G");
}

Result<TensorDataOutput> plan_tensor_data_output(const TensorData& data, const std::string& path,
                                                 std::optional<std::uint64_t> most) {
  TensorDataOutput out;
  if (!most) {
    ETSTREAM_ASSIGN(FilePlan planned, plan(data));
    out.files.push_back({path, std::move(planned), data.entries.size()});
    return out;
  }
  if (is_standard_output(path)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "--split-max-size: several files can't go to standard output; name one");
  }
  out.is_split = true;
  ETSTREAM_ASSIGN(const std::vector<TensorData> shards, split(data, *most));
  // A plan that is only shown needs no name.
  out.is_named = !path.empty();
  const std::string base = path.empty() ? "weights.ptd" : path;
  const auto count = static_cast<std::uint32_t>(shards.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    ETSTREAM_ASSIGN(FilePlan planned, plan(shards[i]));
    out.files.push_back({shard_path(base, i + 1, count), std::move(planned), shards[i].entries.size()});
  }
  return out;
}

void print_shards(const TensorDataOutput& output) {
  for (const TensorDataOutput::File& file : output.files) {
    say("{}: {}, {}\n", file.path, counted(file.keys, "key"), readable_size(file.plan.size));
  }
}

Json shards_to_json(const TensorDataOutput& output) {
  Json out = Json::list();
  for (const TensorDataOutput::File& file : output.files) {
    out.push_back({{"output", file.path}, {"size", file.plan.size}, {"keys", file.keys}});
  }
  return out;
}

}  // namespace etstream::cli
