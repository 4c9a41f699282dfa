// SPDX-License-Identifier: BSD-3-Clause
//
// Loads programs into ExecuTorch's runtime from a bundle of either format, or from a file of their own,
// packed (packed_file.h) or not.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto bundle = etstream::BundledProgramFile::open(file).value();
//   auto loader = etstream::open_mapped_program_loader(bundle.program());
//   if (!loader) return loader.error();
//   std::printf("%zu bytes\n", (*loader)->size().get());
//
// ExecuTorch's Module takes the loader, and its Program a pointer to it.
#pragma once

#include <executorch/runtime/core/data_loader.h>

#include <memory>

#include "etstream/bundled_program.h"
#include "etstream/byte_source.h"
#include "etstream/result.h"

namespace etstream {

/// Reads the program into memory, part by part as the runtime asks for them. `program` may be any bytes, such
/// as the weights of a .ptd file. A packed one is decoded straight to where the runtime wants it, and parts
/// of 4 MiB and more by as many threads as set_default_threads() of packed_file.h said; meanwhile this takes
/// the memory that unpacked() says. size() is exactly the program's: if it has no segments, the runtime loads
/// that many bytes. Every function may be called from several threads at once. Memory that load() returns has
/// the alignment of the part in the program, at least 64 and at most 4096 bytes; it belongs to the buffer,
/// which may outlive the loader. Errors are logged by ExecuTorch and returned: InvalidArgument for a range
/// that is not inside the program, AccessFailed for what can't be read (also from a file that was shortened
/// or replaced), MemoryAllocationFailed. Errors of opening: kTooLarge for a program over SIZE_MAX;
/// kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<executorch::runtime::DataLoader>> open_program_loader(
    ByteSource program);

/// Maps the program and copies only what load_into() is asked for: load() returns a view of the file's pages,
/// which become resident when they are touched and may be evicted again, as none is locked. A buffer's pages
/// are released when it is freed, as buffers of delegates are once these are set up. Otherwise the contract
/// is that of open_program_loader. The mapping lasts as long as the loader and all buffers.
///
/// The file must be the one that `program` was opened from, unchanged until now, or opening fails. Later
/// changes can't be detected: if the file is shortened, touching the lost part raises SIGBUS, and if it is
/// overwritten, the program changes while it runs. Replace files by renaming, as etstream does. For programs
/// that are not trusted, the metadata is checked first, as in ProgramFile::open.
///
/// Errors: kUnsupported for a program that is packed or otherwise not in a regular file, or whose offset in
/// the file does not keep its segments aligned as they are in the program. This is usual in a BP08 file,
/// where the offset is by default a multiple of 32: bundle with a program alignment of 4096, or convert to a
/// segmented bundle. Further, the errors of ProgramFile::open; kCorrupt for a file that was changed; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<executorch::runtime::DataLoader>>
open_mapped_program_loader(const ByteSource& program);

}  // namespace etstream
