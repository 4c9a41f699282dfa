// SPDX-License-Identifier: BSD-3-Clause
#include "files/any_file.h"

#include <cstdlib>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/packed_file.h"
#include "formats/gguf/gguf.h"
#include "formats/safetensors/safetensors.h"
#include "formats/tensor/dimensions.h"
#include "formats/torch/torch_file.h"

namespace etstream {
namespace {

template <class File>
Result<AnyFile> as_any(Result<File> opened) {
  if (!opened) return std::move(opened).error();
  return AnyFile(std::move(opened).value());
}

Result<CheckpointFile> open_safetensors_file(const ByteSource& file) {
  ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
  return CheckpointFile{file, FileKind::kSafetensors, 0, {}, std::move(opened.tensors)};
}

Result<CheckpointFile> open_saved_file(const ByteSource& file) {
  ETSTREAM_ASSIGN(auto tensors, open_torch_file(file));
  return CheckpointFile{file, FileKind::kTorch, 0, {}, std::move(tensors)};
}

Result<CheckpointFile> open_gguf_file(const ByteSource& file) {
  ETSTREAM_ASSIGN(GgufFile opened, open_gguf(file));
  CheckpointFile out{file, FileKind::kGguf, opened.version, opened.metadata, {}};
  out.tensors = checkpoint_tensors(std::move(opened), file);
  return out;
}

}  // namespace

std::string type_text(const CheckpointTensor& tensor) {
  if (tensor.layout) return describe(*tensor.layout);
  return printable(tensor.type) + (tensor.shape ? " " + list_text(*tensor.shape) : "");
}

Result<AnyFile> open_any(const ByteSource& file) {
  ETSTREAM_ASSIGN(const FileKind kind, file_kind(file));
  return open_any(file, kind);
}

Result<AnyFile> open_any(const ByteSource& file, FileKind kind) {
  switch (kind) {
    case FileKind::kProgram:
      return as_any(ProgramFile::open(file));
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
      return as_any(BundledProgramFile::open(file));
    case FileKind::kTensorData:
      return as_any(TensorDataFile::open(file));
    case FileKind::kSafetensors:
      return as_any(open_safetensors_file(file));
    case FileKind::kGguf:
      return as_any(open_gguf_file(file));
    case FileKind::kTorch:
      return as_any(open_saved_file(file));
    case FileKind::kFatContainer:
      return as_any(FatContainerFile::open(file));
    case FileKind::kNativePackage:
      return as_any(NativePackageFile::open(file));
    case FileKind::kUpdate:
      return needs_base(ErrorCode::kUnsupported, file.name());
  }
  std::abort();
}

FileKind kind_of(const AnyFile& file) noexcept {
  return match(
      file, [](const ProgramFile&) { return FileKind::kProgram; },
      [](const BundledProgramFile& bundle) {
        return bundle.format() == BundleFormat::kSegmented ? FileKind::kSegmentedBundle
                                                           : FileKind::kBundledProgram;
      },
      [](const TensorDataFile&) { return FileKind::kTensorData; },
      [](const CheckpointFile& checkpoint) { return checkpoint.kind; },
      [](const FatContainerFile&) { return FileKind::kFatContainer; },
      [](const NativePackageFile&) { return FileKind::kNativePackage; });
}

const ByteSource& source_of(const AnyFile& file) noexcept {
  return match(
      file, [](const CheckpointFile& checkpoint) -> const ByteSource& { return checkpoint.file; },
      [](const auto& opened) -> const ByteSource& { return opened.file(); });
}

}  // namespace etstream
