// SPDX-License-Identifier: BSD-3-Clause
//
// Where bytes lie, in Python's terms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "python/bindings.h"

namespace etstream::python {

/// The name of the class of `object`.
[[nodiscard]] std::string class_name(nb::handle object);

/// A list of what is given for an argument; raises TypeError for text, bytes or a path, which is one alone.
[[nodiscard]] nb::list several(const char* argument, const char* kind, nb::handle given);

/// Whether `object` is a path: bytes are a source, which is none.
[[nodiscard]] bool is_path(nb::handle object);

/// A path, a str or an os.PathLike, as the operating system has it; raises TypeError for something else.
[[nodiscard]] std::string path_of(nb::handle object);
[[nodiscard]] std::vector<std::string> paths_of(const std::vector<nb::object>& objects);

/// The bytes that `object` stands for: a Source; a path; anything with the buffer protocol, C-contiguous, or
/// a torch tensor or NumPy array, in place (the object is kept alive); a readable and seekable binary file; a
/// Cord or FileBackedData of ExecuTorch; or a list or tuple of such, one after another. Raises TypeError for
/// something else, InvalidArgumentError for lists nested more than 64 deep, and the errors of opening it.
[[nodiscard]] ByteSource source_of(nb::handle object);

/// The same of each object in an iterable.
[[nodiscard]] std::vector<ByteSource> sources_of(nb::handle objects);

/// The file at a path, whose reads check signals at times: it may be so large that reading it takes long. It
/// keeps `owner`, of whatever has the file last. Errors: those of ByteSource::file.
[[nodiscard]] Result<ByteSource> open_interruptible_file(const std::string& path,
                                                         std::shared_ptr<const void> owner = nullptr);

/// Identifies the file of an object with fileno(), or the object itself where it has no file.
[[nodiscard]] FileIdentity identity_of_object(nb::handle object);

}  // namespace etstream::python
