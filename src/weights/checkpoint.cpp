// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/checkpoint.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/text.h"
#include "base/try.h"
#include "container/findings.h"
#include "container/json_object.h"
#include "etstream/file_kind.h"
#include "etstream/native_package_file.h"
#include "etstream/program.h"
#include "etstream/tensor_data_file.h"
#include "etstream/tensor_data_shards.h"
#include "io/file_budget.h"
#include "pte/rewrite/editable_program.h"
#include "pte/rewrite/external_constants.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"
#include "weights/sharded_safetensors.h"

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
  return first_error(ErrorCode::kCorrupt, file.file().name(), findings);
}

/// What moving its constants out gives.
Result<std::vector<CheckpointTensor>> program_tensors(const ByteSource& file) {
  ETSTREAM_ASSIGN(const ProgramFile program, ProgramFile::open(file));
  ETSTREAM_TRY(require_sound(program));
  ETSTREAM_ASSIGN(EditableProgram editable, read_editable_program(program));
  ETSTREAM_ASSIGN(TensorData weights, move_constants_out(editable, {}));
  std::vector<CheckpointTensor> out;
  out.reserve(weights.entries.size());
  for (TensorData::Entry& entry : weights.entries) {
    out.push_back(named(std::move(entry.key), std::move(entry.layout), weights.buffers[entry.buffer].data));
  }
  return out;
}

Result<std::vector<CheckpointTensor>> tensor_data_tensors(const ByteSource& file) {
  ETSTREAM_ASSIGN(const TensorDataFile weights, TensorDataFile::open(file));
  ETSTREAM_TRY(require_sound(weights));
  ETSTREAM_ASSIGN(auto entries, weights.entries());
  std::vector<CheckpointTensor> out;
  out.reserve(entries.size());
  for (NamedTensorData& entry : entries) {
    out.push_back(named(std::move(entry.key), std::move(entry.layout), std::move(entry.data)));
  }
  return out;
}

/// The paths of the files that follow `path`, the first of `count`, as gguf-split of llama.cpp names them;
/// none if it has another name.
std::vector<std::string> further_splits(const std::string& path, std::uint32_t count) {
  const auto name = [&](std::uint32_t i) {
    std::array<char, 32> out{};
    std::snprintf(out.data(), out.size(), "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", i, count);
    return std::string(out.data());
  };
  std::vector<std::string> out;
  if (count < 2 || !path.ends_with(name(1))) return out;
  const std::string stem = path.substr(0, path.size() - name(1).size());
  for (std::uint32_t i = 2; i <= count; ++i) out.push_back(stem + name(i));
  return out;
}

Result<void> open_gguf_files(const ByteSource& file, const std::string& path, const OpenFile& open_file,
                             Checkpoint& out) {
  ETSTREAM_ASSIGN(GgufFile first, open_gguf(file));
  const auto further = further_splits(path, first.split_count);
  out.tensors = checkpoint_tensors(std::move(first), file);
  for (const std::string& each : further) {
    ETSTREAM_ASSIGN(const ByteSource split, open_file(each));
    ETSTREAM_ASSIGN(GgufFile opened, open_gguf(split));
    auto tensors = checkpoint_tensors(std::move(opened), split);
    std::move(tensors.begin(), tensors.end(), std::back_inserter(out.tensors));
    out.files.push_back(each);
  }
  return {};
}

/// `size` are the bytes of all files that were opened, of which `file` is the first.
Result<void> check_sharing(const ByteSource& file, std::uint64_t size, const Checkpoint& checkpoint) {
  FileBudget budget(file.name(), size);
  for (const CheckpointTensor& tensor : checkpoint.tensors) ETSTREAM_TRY(budget.spend(tensor.data.size()));
  return {};
}

Result<void> open_tensors(const ByteSource& file, const std::string& path, const OpenFile& open_file,
                          Checkpoint& out) {
  const auto other = [&] {
    return make_error(ErrorCode::kUnsupported,
                      "{}: expected weights: safetensors, or the index of several such (.index.json), GGUF, "
                      "a program (.pte), tensor data (.ptd) or a package (.ptn)",
                      file.name());
  };
  const auto kind = file_kind(file);
  if (!kind) return kind.error().code == ErrorCode::kUnsupported ? other() : kind.error();
  switch (*kind) {
    case FileKind::kSafetensors: {
      ETSTREAM_ASSIGN(SafetensorsFile opened, open_safetensors(file));
      out.tensors = std::move(opened.tensors);
      return {};
    }
    case FileKind::kGguf:
      return open_gguf_files(file, path, open_file, out);
    case FileKind::kProgram: {
      ETSTREAM_ASSIGN(out.tensors, program_tensors(file));
      return {};
    }
    case FileKind::kTensorData: {
      ETSTREAM_ASSIGN(out.tensors, tensor_data_tensors(file));
      const auto paths = with_all_shards({path});
      for (auto shard = paths.begin() + 1; shard != paths.end(); ++shard) {
        ETSTREAM_ASSIGN(const ByteSource opened, open_file(*shard));
        ETSTREAM_ASSIGN(auto tensors, tensor_data_tensors(opened));
        std::move(tensors.begin(), tensors.end(), std::back_inserter(out.tensors));
        out.files.push_back(*shard);
      }
      return {};
    }
    case FileKind::kNativePackage: {
      ETSTREAM_ASSIGN(const NativePackageFile package, NativePackageFile::open(file));
      out.tensors = package.tensors();
      return {};
    }
    case FileKind::kBundledProgram:
    case FileKind::kSegmentedBundle:
    case FileKind::kFatContainer:
      return other();
  }
  std::abort();
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path, const OpenFile& open) {
  return without_exceptions([&]() -> Result<Checkpoint> {
    std::uint64_t opened_size = 0;
    const OpenFile open_file = [&](const std::string& each) -> Result<ByteSource> {
      ETSTREAM_ASSIGN(ByteSource opened, open(each));
      opened_size += opened.size();
      return opened;
    };
    ETSTREAM_ASSIGN(const ByteSource file, open_file(path));
    ETSTREAM_ASSIGN(const bool is_index, begins_json_object(file));
    Checkpoint out;
    if (is_index) {
      ETSTREAM_ASSIGN(out, open_sharded_safetensors(file, path.substr(0, path.rfind('/') + 1), open_file));
    } else {
      ETSTREAM_TRY(open_tensors(file, path, open_file, out));
    }
    out.files.insert(out.files.begin(), path);
    ETSTREAM_TRY(check_sharing(file, opened_size, out));
    return out;
  });
}

}  // namespace etstream
