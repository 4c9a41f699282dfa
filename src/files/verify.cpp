// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/verify.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/temporary_posix.h"
#include "etstream/packed_file.h"
#include "etstream/runtime_checks.h"
#include "files/pieces.h"
#include "formats/checkpoint/weight_sets.h"
#include "formats/pte/program_model.h"
#include "formats/segments/file_kind.h"
#include "formats/torch/torch_file.h"

namespace etstream {
namespace {

/// A file that is checked, as far as it can be opened, and its program if it is a bundle.
struct Checked {
  std::optional<AnyFile> file;
  std::optional<ProgramFile> held;

  [[nodiscard]] const ProgramFile* program() const noexcept {
    if (held) return &*held;
    return file ? std::get_if<ProgramFile>(&*file) : nullptr;
  }
};

Result<Checked> open_and_verify(const ByteSource& file, Findings& findings);

/// Checks the payloads that are files themselves, and only once if they share bytes.
Result<void> verify_payloads(const FatContainerFile& container, Findings& findings) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (const FatPayload& payload : container.payloads()) {
    if (!seen.insert({payload.offset, payload.data.size()}).second) continue;
    ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
    // A container in a container has no use, and nests could have no end, so that none is entered.
    if (!kind || *kind == FileKind::kFatContainer) continue;
    Findings of_payload;
    ETSTREAM_TRY(open_and_verify(payload.data, of_payload));
    const auto within = [&](Finding finding) {
      finding.message = text("payload {}: {}", quote(payload.name), finding.message);
      if (finding.offset) *finding.offset += payload.offset;
      return finding;
    };
    for (const Finding& error : of_payload.errors) add_error(findings, within(error));
    for (const Finding& warning : of_payload.warnings) add_warning(findings, within(warning));
  }
  return {};
}

/// Checks the calls of a program without other errors.
Result<void> verify_program(const ProgramFile& program, LoadedFrom from, Findings& findings) {
  ETSTREAM_ASSIGN(const bool is_sound, verify_loadable(program, from, findings));
  return is_sound ? verify_calls(program, findings) : Result<void>();
}

Result<void> verify_opened(Checked& checked, Findings& findings) {
  return match(
      *checked.file,
      [&](const ProgramFile& program) { return verify_program(program, LoadedFrom::kFile, findings); },
      [&](const BundledProgramFile& bundle) {
        auto program = bundle.open_program();
        const auto check = [](const ProgramFile& held, Findings& found) {
          return verify_program(held, LoadedFrom::kMemory, found);
        };
        auto done = bundle.verify(program, check, findings);
        if (program) checked.held = std::move(program).value();
        return done;
      },
      [&](const TensorDataFile& weights) { return weights.verify(findings); },
      // Opening other files has already checked all there is to check.
      [&](const WeightFile& checkpoint) {
        return checkpoint.kind == FileKind::kTorch ? verify_checksums(checkpoint.file, findings)
                                                   : Result<void>();
      },
      [&](const FatContainerFile& container) -> Result<void> {
        ETSTREAM_TRY(container.verify(findings));
        return verify_payloads(container, findings);
      },
      [&](const NativePackageFile& package) { return package.verify(findings); });
}

/// Opens a file and checks it. Its problems go to `findings`.
Result<Checked> open_and_verify(const ByteSource& file, Findings& findings) {
  Checked checked;
  const auto verify_it = [&]() -> Result<void> {
    ETSTREAM_TRY(check_packed(file));
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind == FileKind::kUpdate) {
      ETSTREAM_TRY(read_update(file));
      return {};
    }
    ETSTREAM_ASSIGN(checked.file, open_any(file, kind));
    return verify_opened(checked, findings);
  };
  ETSTREAM_TRY(note_corrupt(verify_it(), findings));
  ETSTREAM_TRY(file.check_unchanged());
  return checked;
}

Result<void> require_program(const ByteSource& file) {
  ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
  if (kind == FileKind::kProgram || kind == FileKind::kBundledProgram || kind == FileKind::kSegmentedBundle) {
    return {};
  }
  return with_advice(error_in(ErrorCode::kUnsupported, file.name(),
                              "is {}, expected the program or the bundle that the files after it are for",
                              with_article(kind)),
                     {"give that first"});
}

void append(Findings& findings, Findings more) {
  std::move(more.errors.begin(), more.errors.end(), std::back_inserter(findings.errors));
  std::move(more.warnings.begin(), more.warnings.end(), std::back_inserter(findings.warnings));
}

/// Adds the problems of each of `files` by itself.
Result<std::vector<Checked>> open_and_verify_weights(const std::vector<ByteSource>& files,
                                                     Findings& findings) {
  std::vector<Checked> out;
  for (const ByteSource& file : files) {
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    if (kind != FileKind::kTensorData) {
      return explain(file, {"tensor data (.ptd)", {FileKind::kTensorData}},
                     error_in(ErrorCode::kUnsupported, file.name(), "expected tensor data (.ptd)"));
    }
    Findings of_file;
    ETSTREAM_ASSIGN(out.emplace_back(), open_and_verify(file, of_file));
    append(findings, std::move(of_file));
  }
  return out;
}

}  // namespace

Result<Findings> verify(const ByteSource& file) {
  return without_exceptions([&]() -> Result<Findings> {
    Findings findings;
    ETSTREAM_TRY(open_and_verify(file, findings));
    return findings;
  });
}

Result<FileFindings> verify(const ByteSource& file, const std::vector<ByteSource>& weights) {
  return without_exceptions([&]() -> Result<FileFindings> {
    if (!weights.empty()) ETSTREAM_TRY(require_program(file));
    FileFindings findings;
    ETSTREAM_ASSIGN(const Checked checked, open_and_verify(file, findings));
    ETSTREAM_ASSIGN(const std::vector<Checked> checked_weights, open_and_verify_weights(weights, findings));
    const ProgramFile* program = checked.program();
    if (!program) return findings;
    auto requests = read_data_requests(program->model());
    if (findings.ok() && !weights.empty()) {
      if (!requests) return std::move(requests).error();
      std::vector<const TensorDataFile*> sound;
      sound.reserve(checked_weights.size());
      for (const Checked& each : checked_weights) sound.push_back(&std::get<TensorDataFile>(*each.file));
      ETSTREAM_ASSIGN(Findings more, verify(*program, *requests, sound));
      append(findings, std::move(more));
    }
    if (requests) findings.external_keys = external_keys(*requests);
    return findings;
  });
}

namespace {

/// Adds the problems of the set and of each file, except the file at `but`, which has been checked.
Result<void> verify_set(const OpenedWeights& opened, const std::string& but, FileFindings& findings) {
  for (const GivenWeights& given : opened.given) {
    if (!given.index.empty()) findings.files.push_back(given.index);
    for (const WeightFile& file : given.files) {
      findings.files.push_back(file.path);
      if (file.path == but) continue;
      Findings of_file;
      ETSTREAM_TRY(open_and_verify(file.file, of_file));
      append(findings, std::move(of_file));
    }
  }
  for (const auto* const errors : {&opened.problems, &opened.flaws}) {
    for (const Error& error : *errors) add_error(findings, error);
  }
  for (const Error& warning : opened.warnings) add_warning(findings, warning);
  if (findings.files.size() < 2) findings.files.clear();
  return {};
}

Result<FileFindings> verify_path(const std::string& given, const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(const ReportedPath path, reported_path(given, options.open_file));
  FileFindings findings;
  if (!path.has_several) {
    ETSTREAM_ASSIGN(findings, verify(path.file, std::vector<ByteSource>()));
    if (!findings.ok() || options.partial) return findings;
    ETSTREAM_ASSIGN(const auto place, place_in_set(path, options.open_file));
    if (!place && !flaw_of_parallel_part(path.path)) return findings;
  }
  const auto opened = open_weights({path.has_several ? given : path.path}, options);
  if (!opened) {
    ETSTREAM_TRY(note_corrupt(opened.error(), findings));
    return findings;
  }
  ETSTREAM_TRY(verify_set(*opened, path.has_several ? "" : path.path, findings));
  return findings;
}

Result<FileFindings> verify_with_weights(const std::string& path, const std::vector<std::string>& weights,
                                         const CheckpointOptions& options) {
  ETSTREAM_ASSIGN(WeightPaths found, find_weights(weights, options));
  ETSTREAM_ASSIGN(const ByteSource file, options.open_file(path));
  std::vector<ByteSource> sources;
  for (const std::string& weight : found.files) {
    ETSTREAM_ASSIGN(sources.emplace_back(), options.open_file(weight));
  }
  ETSTREAM_ASSIGN(FileFindings findings, verify(file, sources));
  for (const Error& problem : found.problems) add_error(findings, problem);
  findings.weights = std::move(found.files);
  return findings;
}

/// Warns of each folder with one of the files in which a dead writer has left a temporary file: of its
/// outputs, some may have been committed and some not.
void warn_of_leftovers(const std::string& path, FileFindings& findings) {
  std::set<std::string> left;
  const auto look_beside = [&](const std::string& file) {
    if (auto found = leftover_beside(file)) left.insert(*std::move(found));
  };
  look_beside(path);
  std::for_each(findings.files.begin(), findings.files.end(), look_beside);
  std::for_each(findings.weights.begin(), findings.weights.end(), look_beside);
  for (const std::string& each : left) {
    add_warning(
        findings,
        error_in(ErrorCode::kCorrupt, each,
                 "a process that wrote here was killed, or lost power, and left this; of files that it "
                 "wrote together, some may be new and others old: write them again, or remove this if "
                 "they are known to fit"));
  }
}

}  // namespace

Result<FileFindings> verify(const std::string& path, const std::vector<std::string>& weights,
                            const CheckpointOptions& options) {
  return without_exceptions([&]() -> Result<FileFindings> {
    ETSTREAM_ASSIGN(FileFindings findings, weights.empty() ? verify_path(path, options)
                                                           : verify_with_weights(path, weights, options));
    warn_of_leftovers(path, findings);
    return findings;
  });
}

Result<void> add_runs(const ByteSource& file, const std::vector<ByteSource>& weights,
                      const MethodRunOptions& options, FileFindings& findings) {
  if (!findings.ok()) return {};
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(findings.runs, run_methods(file, weights, options));
    for (const MethodRun& run : findings.runs) {
      if (run.ok()) continue;
      const bool is_warning = run.end == MethodRun::End::kInputsRefused;
      (is_warning ? findings.warnings : findings.errors)
          .emplace_back(
              with_advice(error_in(ErrorCode::kCorrupt, file.name(), "{}", summary(run)), advice_of(run)));
    }
    return {};
  });
}

Result<void> add_runs(const std::string& path, const MethodRunOptions& options, FileFindings& findings,
                      const OpenFile& open_file) {
  return without_exceptions([&]() -> Result<void> {
    ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
    std::vector<ByteSource> weights;
    for (const std::string& weight : findings.weights) {
      ETSTREAM_ASSIGN(weights.emplace_back(), open_file(weight));
    }
    return add_runs(file, weights, options, findings);
  });
}

}  // namespace etstream
