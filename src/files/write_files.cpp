// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/write_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/try.h"
#include "etstream/byte_source.h"
#include "etstream/file_kind.h"
#include "etstream/sink.h"

namespace etstream {
namespace {

namespace fs = std::filesystem;

/// A folder that is removed again, unless it was there before or its keep() is called.
class NewFolder {
 public:
  NewFolder(std::string path, bool is_new) : path_(std::move(path)), is_new_(is_new) {}
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (is_new_) fs::remove(path_, ignored);
  }

  void keep() noexcept { is_new_ = false; }

 private:
  const std::string path_;
  bool is_new_;
};

bool is_streamed(const OutputFile& file) { return file.open != nullptr || is_stream(file.path); }

/// Refuses a file that can't be made at its path. `folder` is made for the files in it, if it does not exist.
Result<void> check_place(const OutputFile& file, const fs::path& folder) {
  std::error_code ignored;
  const auto place = [&](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  const fs::path made = folder.has_filename() ? folder : folder.parent_path();
  const bool is_in_new =
      !made.empty() && !fs::exists(made, ignored) && place(fs::path(file.path).parent_path()) == place(made);
  return check_file_sink(is_in_new ? made.string() : file.path);
}

/// Refuses a destination that is an input, or has bytes of a plan.
Result<void> check_no_input(std::span<const OutputFile> files, const OutputFile& file, bool may_replace) {
  const InputRecord* const inputs = InputRecord::current();
  const auto there = file.open ? file.changes : identity_of(file.path);
  if (!there) return {};
  if (!file.open && may_replace) return inputs ? inputs->check_output(file.path) : Result<void>();
  if (inputs) ETSTREAM_TRY(inputs->check_output_in_place(*there, file.path));
  for (const OutputFile& other : files) {
    if (other.plan != nullptr) ETSTREAM_TRY(check_apart(*other.plan, *there));
  }
  return {};
}

/// Writes a file up to its commit, and adds it to `out`.
Result<void> write_pending(const OutputFile& file, const WriteFilesOptions& options, const Progress& progress,
                           std::vector<std::unique_ptr<PendingOutput>>& out) {
  if (file.write) {
    ETSTREAM_ASSIGN(out.emplace_back(), file.write(progress));
    return {};
  }
  ETSTREAM_ASSIGN(auto sink, file.open
                                 ? file.open()
                                 : open_file_sink(file.path, {.sync = options.sync, .warn = options.warn}));
  Sink& opened = *sink;
  out.push_back(std::move(sink));
  return write_uncommitted(*file.plan, opened, progress);
}

}  // namespace

bool is_stream(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

Result<void> check_files(std::span<const OutputFile> files, const WriteFilesOptions& options) {
  std::vector<const FilePlan*> plans;
  for (const OutputFile& file : files) {
    const bool counts = !options.max_disk || !is_streamed(file);
    if (file.plan != nullptr && counts) plans.push_back(file.plan);
  }
  ETSTREAM_TRY(check_disk(plans, options.max_disk));
  OutputPlaces places;
  for (const OutputFile& file : files) {
    if (file.path.empty()) continue;
    ETSTREAM_TRY(check_no_input(files, file, options.may_replace_input && &file == &files.back()));
    if (!file.write && !file.open) ETSTREAM_TRY(check_place(file, options.folder));
  }
  for (const OutputFile& file : files) {
    if (!file.open && !file.path.empty()) ETSTREAM_TRY(places.add(file.path));
    if (file.changes) ETSTREAM_TRY(places.add(*file.changes, file.path));
  }
  for (const OutputFile& file : files) {
    if (file.plan != nullptr && !file.open) ETSTREAM_TRY(check_ending(*file.plan, file.path));
  }
  return {};
}

Result<void> write_files(std::span<const OutputFile> files, const WriteFilesOptions& options) {
  ETSTREAM_TRY(check_files(files, options));
  std::uint64_t total = 0;
  for (const OutputFile& file : files) total += file.plan != nullptr ? file.plan->size : 0;
  std::uint64_t before = 0;
  // Returns the progress of a file. What has no plan says itself how large it is.
  const auto part_of = [&](const Progress& whole, const OutputFile& file) -> Progress {
    if (!whole || file.plan == nullptr) return whole;
    const std::uint64_t begin = std::exchange(before, before + file.plan->size);
    return [&whole, begin, total](std::uint64_t done, std::uint64_t) { return whole(begin + done, total); };
  };
  // Streams come first: what has gone there can't be taken back. An interrupt, which may end the process at
  // once while it waits for a reader, then leaves no temporary file.
  std::vector<const OutputFile*> others;
  for (const OutputFile& file : files) {
    if (!is_streamed(file)) {
      others.push_back(&file);
      continue;
    }
    const Progress progress = options.progress ? options.progress(true) : Progress();
    std::vector<std::unique_ptr<PendingOutput>> stream;
    ETSTREAM_TRY(write_pending(file, options, part_of(progress, file), stream));
    ETSTREAM_TRY(commit_together(stream));
  }
  if (others.empty()) return {};
  // The progress outlives the sinks, which on an interrupt have temporary files to remove.
  const Progress progress = options.progress ? options.progress(false) : Progress();
  ETSTREAM_ASSIGN(const bool is_new,
                  options.folder.empty() ? false : make_folder(options.folder, {.sync = options.sync}));
  NewFolder made(options.folder, is_new);
  std::vector<std::unique_ptr<PendingOutput>> written;
  for (const OutputFile* const file : others) {
    ETSTREAM_TRY(write_pending(*file, options, part_of(progress, *file), written));
    if (others.size() > 1) ETSTREAM_TRY(written.back()->prepare());
  }
  ETSTREAM_TRY(commit_together(written));
  made.keep();
  return {};
}

}  // namespace etstream
