// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramPayloads: where a program's tensors and delegates have their bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "etstream/program.h"
#include "flatbuffer/table_reader.h"

namespace etstream {

/// `program` outlives it. Errors: kCorrupt for an index or a range that leads nowhere, kIo.
class ProgramPayloads {
 public:
  [[nodiscard]] static Result<ProgramPayloads> read(const ProgramFile& program);

  /// `size` bytes: number `index`, which is not 0, of the constants.
  [[nodiscard]] Result<ByteSource> constant(const TableReader& tensor, std::uint32_t index,
                                            std::uint64_t size) const;
  /// The same of the mutable data that `segments` says, an index in the program's list.
  [[nodiscard]] Result<ByteSource> mutable_data(const TableReader& tensor, std::uint64_t segments,
                                                std::uint32_t index, std::uint64_t size) const;
  /// All that a delegate's reference leads to.
  [[nodiscard]] Result<ByteSource> delegate(const TableReader& reference, bool in_segment,
                                            std::uint32_t index) const;

 private:
  ProgramPayloads(const ProgramFile& program, TableReader root) : program_(&program), root_(root) {}
  Result<ByteSource> segment(const TableReader& from, std::uint64_t index) const;
  Result<ByteSource> piece(const TableReader& tensor, const TableReader& pieces, std::uint32_t index,
                           std::uint64_t size) const;

  const ProgramFile* program_;
  TableReader root_;
  std::vector<SegmentInfo> segments_;
};

}  // namespace etstream
