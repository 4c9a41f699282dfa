// SPDX-License-Identifier: BSD-3-Clause
//
// Programs for ExecuTorch's runtime from where they lie, in a bundle of either format or in a file of their
// own.
//
//   const auto file = etstream::ByteSource::file("model.bpte").value();
//   const auto bundle = etstream::BundledProgramFile::open(file).value();
//   auto loader = etstream::open_mapped_program_loader(bundle.program());
//   if (!loader) return loader.error();
//   auto program = executorch::runtime::Program::load(loader->get());
//   if (program.ok()) std::printf("%zu methods\n", program->num_methods());
#pragma once

#include <executorch/runtime/core/data_loader.h>

#include <memory>

#include "etstream/bundled_program_file.h"
#include "etstream/byte_source.h"
#include "etstream/export.h"
#include "etstream/result.h"

namespace etstream {

/// Reads the program into memory, part by part as the runtime asks for them. size() is the program's,
/// exactly: of a program without segments the runtime loads all that there is. Every function may be called
/// from several threads at once. Memory that load() gives is aligned as the part is in the program, to 64
/// bytes at least and 4096 at most, and is the buffer's, which may outlive the loader. What is wrong is
/// logged by ExecuTorch and returned: InvalidArgument for a range that is not inside the program,
/// AccessFailed for what can't be read (from a file that was shortened, or that another has replaced, too),
/// MemoryAllocationFailed. Errors of opening: kTooLarge for a program over SIZE_MAX; kOutOfMemory.
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<executorch::runtime::DataLoader>> open_program_loader(
    ByteSource program);

/// Maps the program and copies nothing but what load_into() is asked for: load() gives a view of the file's
/// pages, which come into memory as they are touched and may leave it again, as none is locked. What a buffer
/// held leaves it when the buffer is freed, as those of delegates are once they are set up. The contract is
/// otherwise that of open_program_loader. The mapping lasts as long as the loader and all buffers.
///
/// The file is the one that `program` was opened from, unchanged until now, or opening fails. Nothing can
/// hold on to that from then on: where the file is shortened, touching what it has lost is SIGBUS, and where
/// it is overwritten the program changes while it runs. Replace files by renaming, as etstream does. Of
/// programs that are not trusted the metadata is checked before, as ProgramFile::open does.
///
/// Errors: kUnsupported for a program that is not in a regular file, or that lies at an offset that keeps its
/// segments from being aligned as they are in the program, which a BP08 file's usually does, by default at a
/// multiple of 32: bundle with a program alignment of 4096, or convert to a segmented bundle. Those of
/// ProgramFile::open; kCorrupt for a file that was changed; kIo.
[[nodiscard]] ETSTREAM_EXPORT Result<std::unique_ptr<executorch::runtime::DataLoader>>
open_mapped_program_loader(const ByteSource& program);

}  // namespace etstream
