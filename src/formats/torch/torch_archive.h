// SPDX-License-Identifier: BSD-3-Clause
//
// TorchArchive: the members of a zip archive by their names in its folder, and the tensors in their bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/result.h"
#include "formats/torch/torch_types.h"

namespace etstream {

inline constexpr std::string_view kTorchPickle = "data.pkl";  // the member that describes what was saved

struct TorchArchive {
  ByteSource file;
  /// The members by name, without the folder that all are in.
  std::map<std::string, ByteSource, std::less<>> members;

  /// Returns null if there is no member of that name.
  [[nodiscard]] const ByteSource* find(std::string_view name) const;
};

/// Opens an archive. Errors: kUnsupported for members in no folder or several, and for members that are
/// compressed or from big-endian machines; those of read_zip().
[[nodiscard]] Result<TorchArchive> open_torch_archive(const ByteSource& file);

/// The places of a tensor's elements in a storage, in elements.
struct TorchElements {
  const TorchType* type = nullptr;
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> strides;
};

/// Returns a tensor in a storage. Errors: kCorrupt for elements that are not inside the storage, and if the
/// numbers of sizes and strides differ.
[[nodiscard]] Result<CheckpointTensor> tensor_in(const ByteSource& storage, std::string name,
                                                 TorchElements elements);

/// Reads the tensors of an archive that torch.save wrote, whose `pickle` is its member data.pkl. See
/// open_torch_file().
[[nodiscard]] Result<std::vector<CheckpointTensor>> saved_tensors(const TorchArchive& archive,
                                                                  const ByteSource& pickle);

/// Reads the tensors of an archive that torch.export.save wrote (archive_format is pt2). See
/// open_torch_file().
[[nodiscard]] Result<std::vector<CheckpointTensor>> exported_tensors(const TorchArchive& archive);

}  // namespace etstream
