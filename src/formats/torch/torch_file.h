// SPDX-License-Identifier: BSD-3-Clause
//
// A reader of files that torch.save writes, and of archives that torch.export.save writes (.pt2): zip
// archives whose members are the tensors' bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "etstream/tensor.h"
#include "formats/torch/pickle.h"

namespace etstream {

inline constexpr std::string_view kTorchPickle = "data.pkl";  // the member that describes what was saved

/// An archive's members by name, without the folder that all are in.
struct TorchArchive {
  ByteSource file;
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

/// Reads the tensors in `file`, and leaves their bytes there. Names in nested dicts, and numbers in lists,
/// are joined by dots; other objects are skipped. Tensors whose elements do not follow one another are
/// gathered as they are read. A .pt2 archive gives the weights and constants, with the name of their model in
/// front if there are several. Nothing in the file is executed. Memory grows with the pickle and the
/// archive's directory. Errors: kCorrupt; kUnsupported for other classes than those of tensors and
/// containers, compressed members, big-endian files, and archives that torch did not write; kTooLarge.
[[nodiscard]] Result<std::vector<CheckpointTensor>> open_torch_file(const ByteSource& file);

/// Reads all members of `file`, which open_torch_file() opens. Adds an error for each member whose bytes have
/// another checksum than the archive says, and a warning if there are members without one, as torch can leave
/// out checksums, and with them the data. Errors: those of reading.
[[nodiscard]] Result<void> verify_checksums(const ByteSource& file, Findings& findings);

}  // namespace etstream
