// SPDX-License-Identifier: BSD-3-Clause
//
// Sources of bytes in Python's terms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "python/bindings.h"

namespace etstream::python {

/// Returns the name of the class of `object`.
[[nodiscard]] std::string class_name(nb::handle object);

/// Returns the list that is given for an argument. Raises TypeError for text, bytes or a path, which is a
/// single item.
[[nodiscard]] nb::list several(const char* argument, const char* kind, nb::handle given);

/// Returns whether `object` is a path. Bytes are a source, and no path.
[[nodiscard]] bool is_path(nb::handle object);

/// Returns a path, a str or an os.PathLike, in the operating system's form. Raises TypeError for something
/// else.
[[nodiscard]] std::string path_of(nb::handle object);
/// Returns the path that an os.PathLike stands for, which could answer otherwise the next time; another
/// object as it is.
[[nodiscard]] nb::object asked(nb::handle object);
[[nodiscard]] std::vector<std::string> paths_of(const std::vector<nb::object>& objects);

/// Returns the bytes that `object` stands for: a Source; a path; anything with the buffer protocol,
/// C-contiguous, or a torch tensor or NumPy array, in place (the object is kept alive); a readable and
/// seekable binary file; a Cord or FileBackedData of ExecuTorch; or a list or tuple of these, one after
/// another. Raises TypeError for something else, InvalidArgumentError for lists nested more than 64 deep, and
/// the errors of opening it.
[[nodiscard]] ByteSource source_of(nb::handle object);

/// Returns the same for each object in an iterable.
[[nodiscard]] std::vector<ByteSource> sources_of(nb::handle objects);

/// Returns the file at a path. Its reads sometimes check for signals: it may be so large that reading it
/// takes long. It keeps `owner`, the last owner of the file, alive. Errors: those of ByteSource::file.
[[nodiscard]] Result<ByteSource> open_interruptible_file(const std::string& path,
                                                         std::shared_ptr<const void> owner = nullptr);

/// Identifies the file of an object with fileno(), or the object itself if it has no file.
[[nodiscard]] FileIdentity identity_of_object(nb::handle object);

}  // namespace etstream::python
