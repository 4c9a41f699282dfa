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

/// Whether a file begins as an object in JSON does.
Result<bool> is_json_object(const ByteSource& file) {
  std::array<char, 64> begin{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), file.size()));
  ETSTREAM_TRY(file.read_at(0, std::as_writable_bytes(std::span(begin)).first(n)));
  const std::string_view bytes(begin.data(), n);
  const auto first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{';
}

Result<std::vector<CheckpointTensor>> open_tensors(const ByteSource& file) {
  const auto kind = file_kind(file);
  if (kind && *kind == FileKind::kSafetensors) return open_safetensors(file);
  if (kind && *kind == FileKind::kProgram) return open_program(file);
  if (kind && *kind == FileKind::kTensorData) return open_tensor_data(file);
  if (!kind && kind.error().code != ErrorCode::kUnsupported) return kind.error();
  return make_error(ErrorCode::kUnsupported, file.name(),
                    ": expected weights: safetensors, or the index of several such (.index.json), a program "
                    "(.pte) or named data (.ptd)");
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path) {
  return without_exceptions([&]() -> Result<Checkpoint> {
    ETSTREAM_ASSIGN(const ByteSource file, ByteSource::file(path));
    ETSTREAM_ASSIGN(const bool is_index, is_json_object(file));
    Checkpoint out;
    if (is_index) {
      ETSTREAM_ASSIGN(out, open_sharded_safetensors(file, path.substr(0, path.rfind('/') + 1)));
    } else {
      ETSTREAM_ASSIGN(out.tensors, open_tensors(file));
    }
    out.files.insert(out.files.begin(), path);
    return out;
  });
}

}  // namespace etstream
