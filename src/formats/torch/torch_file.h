// SPDX-License-Identifier: BSD-3-Clause
//
// A reader of files that torch.save writes, and of archives that torch.export.save writes (.pt2): zip
// archives whose members are the tensors' bytes.
#pragma once

#include <vector>

#include "etstream/byte_source.h"
#include "etstream/checkpoint_tensor.h"
#include "etstream/findings.h"
#include "etstream/result.h"

namespace etstream {

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
