// SPDX-License-Identifier: BSD-3-Clause
#include "formats/checkpoint/weight_file.h"

#include <cstdlib>
#include <utility>

#include "core/base/findings.h"
#include "core/base/text.h"
#include "core/base/try.h"
#include "etstream/native_package_file.h"
#include "etstream/program.h"
#include "etstream/tensor_data_file.h"
#include "formats/pte/rewrite/editable_program.h"
#include "formats/pte/rewrite/external_data.h"
#include "formats/safetensors/safetensors.h"
#include "formats/torch/torch_file.h"

namespace etstream {
namespace {

using Tensors = std::vector<CheckpointTensor>;

/// Makes tensors of `entries`, which have a key and a layout each; `data_of` gives the bytes of one.
template <class Entry, class DataOf>
Tensors tensors_of(std::vector<Entry> entries, const DataOf& data_of) {
  Tensors out;
  out.reserve(entries.size());
  for (Entry& entry : entries) {
    std::string type(entry.layout ? name_of(entry.layout->scalar_type) : "");
    out.push_back({std::move(entry.key), std::move(type), std::move(entry.layout), data_of(entry)});
  }
  return out;
}

/// Returns the tensors that moving the program's constants out gives.
Result<Tensors> program_tensors(const ByteSource& file) {
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file));
  ETSTREAM_TRY(require_sound(program));
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
  ETSTREAM_ASSIGN(TensorData weights, move_constants_out(editable, {}));
  return tensors_of(std::move(weights.entries),
                    [&](const TensorData::Entry& entry) { return weights.buffers[entry.buffer].data; });
}

Result<Tensors> tensor_data_tensors(const ByteSource& file) {
  ETSTREAM_ASSIGN(const TensorDataFile weights, TensorDataFile::open(file));
  ETSTREAM_TRY(require_sound(weights));
  ETSTREAM_ASSIGN(auto entries, weights.entries());
  for (NamedTensorData& entry : entries) {
    if (!entry.layout) continue;
    // A sound file may have more bytes, which ExecuTorch does not read.
    ETSTREAM_ASSIGN(const std::uint64_t size, byte_size(entry.layout->scalar_type, entry.layout->sizes));
    ETSTREAM_ASSIGN(entry.data, entry.data.slice(0, size));
  }
  return tensors_of(std::move(entries), [](const NamedTensorData& entry) { return entry.data; });
}

}  // namespace

Expected expected_weights() {
  return {
      "weights: safetensors, or the index of several such (.index.json), GGUF, a file of torch.save (.pth, "
      ".bin), a program (.pte), tensor data (.ptd) or a package (.ptn)",
      {FileKind::kSafetensors, FileKind::kGguf, FileKind::kTorch, FileKind::kProgram, FileKind::kTensorData,
       FileKind::kNativePackage},
      JsonContent::kCheckpointIndex};
}

Result<WeightFile> open_weight_file(const std::string& path, const ByteSource& file) {
  const auto other = [&] {
    return explain(file, expected_weights(),
                   error_in(ErrorCode::kUnsupported, file.name(), "expected {}", expected_weights().what));
  };
  const auto kind = file_kind(file);
  if (!kind) return kind.error().code == ErrorCode::kUnsupported ? other() : kind.error();
  WeightFile out{path, file, *kind, {}, {}};
  switch (*kind) {
    case FileKind::kSafetensors: {
      ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
      out.tensors = std::move(opened.tensors);
      return out;
    }
    case FileKind::kGguf: {
      ETSTREAM_ASSIGN(GgufFile opened, open_gguf(file));
      out.split = opened.split;
      out.tensors = checkpoint_tensors(std::move(opened), file);
      return out;
    }
    case FileKind::kTorch: {
      ETSTREAM_ASSIGN(out.tensors, open_torch_file(file));
      return out;
    }
    case FileKind::kProgram: {
      ETSTREAM_ASSIGN(out.tensors, program_tensors(file));
      return out;
    }
    case FileKind::kTensorData: {
      ETSTREAM_ASSIGN(out.tensors, tensor_data_tensors(file));
      return out;
    }
    case FileKind::kNativePackage: {
      ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
      out.tensors = package.tensors();
      return out;
    }
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
    case FileKind::kFatContainer:
    case FileKind::kUpdate:
      return other();
  }
  std::abort();
}

Result<WeightFile> open_indexed_file(const std::string& path, const ByteSource& file) {
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kTorch) return open_weight_file(path, file);
  ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
  return WeightFile{path, file, FileKind::kSafetensors, std::move(opened.tensors), {}};
}

}  // namespace etstream
