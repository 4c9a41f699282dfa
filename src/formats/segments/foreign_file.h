// SPDX-License-Identifier: BSD-3-Clause
//
// Files that people mistake for a model: the output of a failed download, compressed files, and formats of
// other tools.
#pragma once

#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Refuses a file that is recognised as none of FileKind: an empty file, a Git LFS pointer, an HTML page, an
/// error as JSON, XML or text, a compressed file. Reads only the beginning, and the last bytes
/// of a file whose beginning has no identifier. Accepts what it does not recognise. Errors: kUnsupported,
/// which says what it is and what to do; those of reading.
[[nodiscard]] Result<void> refuse_foreign(const ByteSource& file);

/// Returns whether `file` is all of a file or of a block of bytes. A part is no download, and has no name of
/// its own.
[[nodiscard]] bool is_whole_file(const ByteSource& file);

}  // namespace etstream
