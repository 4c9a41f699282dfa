// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/verify.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "container/file_kind.h"
#include "container/findings.h"
#include "etstream/bundled_program_file.h"
#include "etstream/program.h"
#include "etstream/program_weights.h"
#include "etstream/tensor_data_file.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"

namespace etstream {
namespace {

template <class File>
Result<void> open_and_verify(const ByteSource& file, Findings& findings) {
  ETSTREAM_ASSIGN(const File opened, File::open(file));
  return opened.verify(findings);
}

Result<void> open_and_verify(FileKind kind, const ByteSource& file, Findings& findings) {
  switch (kind) {
    case FileKind::kProgram:
      return open_and_verify<ProgramFile>(file, findings);
    case FileKind::kTensorData:
      return open_and_verify<TensorDataFile>(file, findings);
    case FileKind::kSafetensors: {
      const auto tensors = open_safetensors(file);
      return tensors ? Result<void>() : tensors.error();
    }
    case FileKind::kGguf: {
      const auto opened = open_gguf(file);
      return opened ? Result<void>() : opened.error();
    }
    default:
      return open_and_verify<BundledProgramFile>(file, findings);
  }
}

bool holds_program(FileKind kind) {
  return kind == FileKind::kProgram || kind == FileKind::kBundledProgram ||
         kind == FileKind::kSegmentedBundle;
}

void append(Findings& findings, Findings more) {
  std::move(more.errors.begin(), more.errors.end(), std::back_inserter(findings.errors));
  std::move(more.warnings.begin(), more.warnings.end(), std::back_inserter(findings.warnings));
}

Result<Findings> verify_one(FileKind kind, const ByteSource& file) {
  Findings findings;
  auto done = open_and_verify(kind, file, findings);
  if (!done) {
    if (done.error().code != ErrorCode::kCorrupt) return std::move(done).error();
    add_error(findings, std::move(done).error().message);
  }
  ETSTREAM_TRY(file.check_unchanged());
  return findings;
}

/// Files that are sound each.
Result<Findings> verify_together(const ByteSource& file, const std::vector<ByteSource>& weights) {
  ETSTREAM_ASSIGN(const ProgramFile program, open_program(file));
  std::vector<std::optional<TensorDataFile>> opened(weights.size());
  std::vector<const TensorDataFile*> all;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    ETSTREAM_ASSIGN(opened[i], TensorDataFile::open(weights[i]));
    all.push_back(&*opened[i]);
  }
  return verify(program, all);
}

}  // namespace

Result<Findings> verify(const ByteSource& file) {
  return without_exceptions([&]() -> Result<Findings> {
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    return verify_one(kind, file);
  });
}

Result<Findings> verify(const ByteSource& file, const std::vector<ByteSource>& weights) {
  return without_exceptions([&]() -> Result<Findings> {
    ETSTREAM_ASSIGN(const FileKind file_is, file_kind(file));
    if (!weights.empty() && !holds_program(file_is)) {
      return make_error(ErrorCode::kUnsupported, file.name(),
                        ": expected the program or the bundle that the files after it are for");
    }
    ETSTREAM_ASSIGN(Findings findings, verify_one(file_is, file));
    for (const ByteSource& source : weights) {
      ETSTREAM_ASSIGN(const FileKind kind, file_kind(source));
      if (kind != FileKind::kTensorData) {
        return make_error(ErrorCode::kUnsupported, source.name(), ": expected named data (.ptd)");
      }
      ETSTREAM_ASSIGN(Findings more, verify_one(kind, source));
      append(findings, std::move(more));
    }
    if (!findings.ok() || weights.empty()) return findings;
    ETSTREAM_ASSIGN(Findings more, verify_together(file, weights));
    append(findings, std::move(more));
    return findings;
  });
}

}  // namespace etstream
