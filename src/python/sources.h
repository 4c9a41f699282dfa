// SPDX-License-Identifier: BSD-3-Clause
//
// Sources of bytes in Python's terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etstream/byte_source.h"
#include "etstream/result.h"
#include "python/bindings.h"

namespace etstream::python {

/// Makes an object of `size` bytes, to be filled. Raises ValueError for more than fits.
[[nodiscard]] nb::bytes new_bytes(std::uint64_t size);

/// Returns the name of the class of `object`.
[[nodiscard]] std::string class_name(nb::handle object);

/// Returns the path of an open file of Python's, or a description if it has none.
[[nodiscard]] std::string name_of_file(nb::handle file);

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
/// seekable binary file; a Cord or FileBackedData of ExecuTorch; or a list or tuple of these other than
/// paths, one after another. A packed file gives its original bytes, wherever it lies; a Source is what it
/// was made as. Raises TypeError for something else, InvalidArgumentError for lists nested more than 64 deep,
/// and the errors of opening it.
[[nodiscard]] ByteSource source_of(nb::handle object);

/// Opens a file of the class T, which is a source.
template <class T>
T opened_file(const SourceLike& source) {
  return without_gil([file = source_of(source)] { return T::open(file); });
}

/// Returns the same for each object in an iterable.
[[nodiscard]] std::vector<ByteSource> sources_of(nb::handle objects);

/// Does the same as source_of() for what is no file by itself, such as a tensor's elements: bytes in memory
/// are never unpacked.
[[nodiscard]] ByteSource data_of(nb::handle object);

/// Opens the file at a path as it lies, and otherwise does the same as data_of().
[[nodiscard]] ByteSource raw_source_of(nb::handle object);

/// Fills `out` with what a binary file of Python's has from its position on, and returns how many bytes these
/// are: fewer only at its end. Raises TypeError for a file of text. With the GIL.
[[nodiscard]] Result<std::size_t> read_on(nb::handle file, std::span<std::byte> out);

/// Returns the file at a path. Its reads sometimes check for signals: it may be so large that reading it
/// takes long. It keeps `owner`, the last owner of the file, alive. Errors: those of ByteSource::file.
[[nodiscard]] Result<ByteSource> open_interruptible_file(const std::string& path,
                                                         std::shared_ptr<const void> owner = nullptr);

/// Identifies the file of an object with fileno(), or the object itself if it has no file.
[[nodiscard]] FileIdentity identity_of_object(nb::handle object);

}  // namespace etstream::python
