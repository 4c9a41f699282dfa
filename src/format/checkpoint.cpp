// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <array>
#include <cstring>
#include <span>

#include "base/text.h"
#include "base/try.h"
#include "etstream/program_changes.h"
#include "etstream/tensor_data_file.h"
#include "format/file_kind.h"
#include "format/safetensors.h"
#include "format/sharded_safetensors.h"

namespace etstream {
namespace {

CheckpointTensor named(std::string name, std::optional<TensorLayout> layout, ByteSource data) {
  std::string type(layout ? name_of(layout->scalar_type) : "");
  return {std::move(name), std::move(type), std::move(layout), std::move(data)};
}

template <class File>
Result<void> require_sound(const File& file) {
  Findings findings;
  ETSTREAM_TRY(file.verify(findings));
  if (findings.ok()) return {};
  return Error{ErrorCode::kCorrupt, findings.errors.front()};
}

/// What moving its constants out gives.
Result<std::vector<CheckpointTensor>> open_program(const ByteSource& file) {
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file));
  ETSTREAM_TRY(require_sound(program));
  ProgramChanges changes;
  changes.constants_out.emplace();
  ETSTREAM_ASSIGN(ProgramPlan planned, plan(program, changes));
  std::vector<CheckpointTensor> out;
  for (TensorData::Entry& entry : planned.weights->entries) {
    out.push_back(
        named(std::move(entry.key), std::move(entry.layout), planned.weights->buffers[entry.buffer].data));
  }
  return out;
}

Result<std::vector<CheckpointTensor>> open_tensor_data(const ByteSource& file) {
  ETSTREAM_ASSIGN(const TensorDataFile weights, TensorDataFile::open(file));
  ETSTREAM_TRY(require_sound(weights));
  ETSTREAM_ASSIGN(auto entries, weights.entries());
  std::vector<CheckpointTensor> out;
  for (NamedTensorData& entry : entries) {
    out.push_back(named(std::move(entry.key), std::move(entry.layout), std::move(entry.data)));
  }
  return out;
}

enum class CheckpointKind { kSafetensors, kIndex, kProgram, kTensorData };

/// Told by the first bytes: of safetensors a length and then an object in JSON, which the length's own bytes
/// can't be taken for, as it is below 2^32.
Result<CheckpointKind> checkpoint_kind(const ByteSource& file) {
  std::array<char, 64> begin{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), file.size()));
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(begin)).first(n)));
  const std::string_view bytes(begin.data(), n);
  if (n > 8 && bytes.substr(4, 5) == std::string_view("\0\0\0\0{", 5)) return CheckpointKind::kSafetensors;
  const auto first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') return CheckpointKind::kIndex;
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kProgram) return CheckpointKind::kProgram;
  if (kind && *kind == FileKind::kTensorData) return CheckpointKind::kTensorData;
  return make_error(ErrorCode::kUnsupported, file.name(),
                    ": expected safetensors or the index of such (.safetensors, .index.json), a program "
                    "(.pte) or named data (.ptd), found ",
                    n == 0 ? "nothing" : quote(bytes.substr(0, 8)));
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path) {
  return without_exceptions([&]() -> Result<Checkpoint> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    ETSTREAM_ASSIGN(const CheckpointKind kind, checkpoint_kind(file));
    Checkpoint out;
    if (kind == CheckpointKind::kIndex) {
      ETSTREAM_ASSIGN(out, open_sharded_safetensors(file, path.substr(0, path.rfind('/') + 1)));
    } else if (kind == CheckpointKind::kSafetensors) {
      ETSTREAM_ASSIGN(out.tensors, open_safetensors(file));
    } else if (kind == CheckpointKind::kProgram) {
      ETSTREAM_ASSIGN(out.tensors, open_program(file));
    } else {
      ETSTREAM_ASSIGN(out.tensors, open_tensor_data(file));
    }
    out.files.insert(out.files.begin(), path);
    return out;
  });
}

}  // namespace etstream
