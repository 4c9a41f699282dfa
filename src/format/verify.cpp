// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/verify.h"

#include "base/try.h"
#include "etstream/bundled_program_file.h"
#include "etstream/program.h"
#include "etstream/tensor_data_file.h"
#include "format/file_kind.h"
#include "format/safetensors.h"
#include "format/test_case_check.h"

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
    default:
      return open_and_verify<BundledProgramFile>(file, findings);
  }
}

}  // namespace

Result<Findings> verify(const ByteSource& file) {
  return without_exceptions([&]() -> Result<Findings> {
    ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
    Findings findings;
    auto done = open_and_verify(kind, file, findings);
    if (!done) {
      if (done.error().code != ErrorCode::kCorrupt) return std::move(done).error();
      add_error(findings, std::move(done).error().message);
    }
    ETSTREAM_TRY(file.check_unchanged());
    return findings;
  });
}

}  // namespace etstream
