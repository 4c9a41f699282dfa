# SPDX-License-Identifier: BSD-3-Clause
"""Types of arguments, for annotations and type checkers. Types of torch and NumPy, both optional, are protocols."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from etstream._core import CheckpointTensor, Source, Tensor


class Buffer(Protocol):
    """An object with the buffer protocol, as type checkers know it for every version of Python."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class ReadableFile(Protocol):
    """A binary file that can be read anywhere."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = ..., /) -> Any: ...
    def tell(self) -> int: ...


class ReadableStream(Protocol):
    """Anything that gives its next bytes: as many as asked for, or fewer, and none at its end."""

    def read(self, size: int, /) -> bytes: ...


class WritableFile(Protocol):
    """Anything that takes bytes; it returns how many it took, or None for all."""

    def write(self, data: memoryview, /) -> Any: ...


class MemoryOfTorch(Protocol):
    """A tensor or a storage of torch's."""

    def data_ptr(self) -> int: ...


class TensorOfTorch(MemoryOfTorch, Protocol):
    """A tensor of torch's, but not a storage."""

    def dim(self) -> int: ...


class ArrayOfNumPy(Protocol):
    """An array or a scalar of NumPy's, whose stubs declare the buffer protocol from Python 3.12 on."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def itemsize(self) -> int: ...


class DtypeOfLibrary(Protocol):
    """A dtype of torch's or NumPy's."""

    @property
    def itemsize(self) -> int: ...


class HasSource(Protocol):
    """An object that says where its data lies, such as etstream.executorch.LazyData."""

    @property
    def source(self) -> Source: ...


class TestCaseLike(Protocol):
    """An etstream.TestCase, or ExecuTorch's MethodTestCase."""

    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def expected_outputs(self) -> Sequence[Any]: ...


class TestSuiteLike(Protocol):
    """An etstream.TestSuite, or ExecuTorch's MethodTestSuite."""

    @property
    def method_name(self) -> str: ...
    @property
    def test_cases(self) -> Sequence[TestCaseLike]: ...


if TYPE_CHECKING:
    SequenceOfParts: TypeAlias = Sequence["PartLike"]
else:
    SequenceOfParts = Sequence  # get_type_hints() looks for names in the caller's module

PartLike: TypeAlias = Buffer | ReadableFile | MemoryOfTorch | ArrayOfNumPy | HasSource | Source | SequenceOfParts
"""A buffer (bytes, memoryview, mmap, a NumPy array, a torch tensor on the CPU of any dtype), which is never copied; a
readable and seekable binary file; a Source; or a list of these, which are the parts of one file."""
SourceLike: TypeAlias = str | os.PathLike[str] | PartLike
"""A source: a path, or a PartLike."""
FilesLike: TypeAlias = SourceLike | Sequence[SourceLike]
"""A source, or several."""
StreamLike: TypeAlias = SourceLike | int | ReadableStream
"""A source; an open descriptor, such as that of a pipe; or an object with read(). The latter two are read from their
positions on."""
OutputLike: TypeAlias = str | os.PathLike[str] | int | WritableFile
"""An output: a path; an open descriptor; or an object with write()."""
TensorLike: TypeAlias = Tensor | CheckpointTensor | TensorOfTorch | ArrayOfNumPy
"""A Tensor, a CheckpointTensor, a tensor of torch's on the CPU, or an array of NumPy's."""
DtypeLike: TypeAlias = str | DtypeOfLibrary | type[Any]
"""A dtype of torch's or NumPy's, or the name of one."""
