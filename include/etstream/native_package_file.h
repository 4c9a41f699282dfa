// SPDX-License-Identifier: BSD-3-Clause
//
// Reads a package of ExecuTorch's native backend (.ptn) in place.
//
//   const auto package = etstream::NativePackageFile::open(etstream::ByteSource::file("model.ptn").value());
//   if (!package) return package.error();
//   for (const etstream::CheckpointTensor& constant : package->constants()) std::puts(constant.name.c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/export.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

/// A member of the archive: program.ptg, program.safetensors, aliases.json; readers ignore others.
struct PackageMember {
  std::string name;
  std::uint64_t offset = 0;  // of its data in the file, in bytes
  std::uint32_t crc32 = 0;   // the expected checksum of its data
  ByteSource data;           // it is not copied
};

/// Another name for a constant.
struct ConstantAlias {
  std::string key;
  std::size_t constant = 0;  // its index in constants()
};

/// An open package. Holds the archive's directory, the header of the constants and the aliases in memory. All
/// functions may be called from several threads at once.
class ETSTREAM_EXPORT NativePackageFile {
 public:
  /// Reads and checks the directory, the header of the constants and the aliases. Errors: kCorrupt, naming
  /// file, offset, expected and found; kUnsupported for members that are compressed or encrypted; kTooLarge
  /// over 65,536 members; kIo.
  [[nodiscard]] static Result<NativePackageFile> open(ByteSource file);

  /// Returns the source that was opened.
  [[nodiscard]] const ByteSource& file() const noexcept { return file_; }
  /// Returns the members in the order of the directory.
  [[nodiscard]] const std::vector<PackageMember>& members() const noexcept { return members_; }
  /// Returns the graph, a flatbuffer with the identifier NPTG.
  [[nodiscard]] const ByteSource& graph() const noexcept { return graph_; }
  /// Returns the constants in the order of their bytes. No two share bytes.
  [[nodiscard]] const std::vector<CheckpointTensor>& constants() const noexcept { return constants_; }
  /// Returns the aliases, sorted by key.
  [[nodiscard]] const std::vector<ConstantAlias>& aliases() const noexcept { return aliases_; }
  /// Returns all tensors that a graph may ask for: the constants, then the aliases with the bytes of their
  /// constants.
  [[nodiscard]] std::vector<CheckpointTensor> tensors() const;

  /// Checks what open() does not: each member's checksum, for which all bytes are read; the graph; that the
  /// constants that it requires exist, and that those it changes share no bytes with others; and what
  /// ExecuTorch's runtime would reject. Adds the problems to `findings`. Error: kIo.
  [[nodiscard]] Result<void> verify(Findings& findings) const;

 private:
  NativePackageFile(ByteSource file, std::vector<PackageMember> members)
      : file_(std::move(file)), members_(std::move(members)) {}

  [[nodiscard]] const PackageMember* find(std::string_view name) const noexcept;
  Result<void> open_constants();
  Result<void> open_aliases();
  Result<void> verify_checksums(Findings& findings) const;
  Result<void> verify_graph(Findings& findings) const;
  void verify_types(Findings& findings) const;

  ByteSource file_;
  std::vector<PackageMember> members_;
  ByteSource graph_;
  std::vector<CheckpointTensor> constants_;
  std::vector<ConstantAlias> aliases_;
  bool has_metadata_ = false;  // __metadata__, in the header of the constants
};

}  // namespace etstream
