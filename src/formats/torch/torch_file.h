// SPDX-License-Identifier: BSD-3-Clause
//
// Files that torch.save writes, and archives that torch.export.save does (.pt2), for reading: zip archives
// whose members are the tensors' bytes.
#pragma once

#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

/// The tensors in `file`, with their bytes left there. Names in dicts inside dicts, and numbers in lists, are
/// joined by dots; what is no tensor is left aside. Tensors whose elements do not lie one after another are
/// gathered as they are read. Of a .pt2 archive the weights and constants; where it has several models,
/// behind their names. Nothing in the file is executed. Memory follows the pickle and the archive's
/// directory. Errors: kCorrupt; kUnsupported for other classes than those of tensors and containers,
/// compressed members, big-endian files, and archives that torch did not write; kTooLarge.
[[nodiscard]] Result<std::vector<CheckpointTensor>> open_torch_file(const ByteSource& file);

/// Reads all members of `file`, which open_torch_file() opens, and adds an error for each whose bytes have
/// another checksum than the archive says; a warning where it has none, as torch leaves them out on demand.
/// Errors: those of reading.
[[nodiscard]] Result<void> verify_checksums(const ByteSource& file, Findings& findings);

}  // namespace etstream
