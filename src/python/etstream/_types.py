# SPDX-License-Identifier: BSD-3-Clause
"""What functions take, for a type checker: text at run time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from etstream._core import CheckpointTensor, Source, Tensor
    from typing_extensions import Buffer


class ReadableFile(Protocol):
    """A binary file that can be read anywhere."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = ..., /) -> Any: ...
    def tell(self) -> int: ...


class WritableFile(Protocol):
    """Anything that takes bytes; it says how many it took, or None for all."""

    def write(self, data: memoryview, /) -> Any: ...


class MemoryOfTorch(Protocol):
    """A tensor or a storage of torch's."""

    def data_ptr(self) -> int: ...


class HasSource(Protocol):
    """Data that says where it lies: etstream.executorch.LazyData."""

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


SourceLike: TypeAlias = (
    "str | os.PathLike[str] | Buffer | ReadableFile | MemoryOfTorch | HasSource | Source | Sequence[SourceLike]"
)
OutputLike: TypeAlias = "str | os.PathLike[str] | int | WritableFile"
TensorLike: TypeAlias = "Tensor | CheckpointTensor | Buffer | MemoryOfTorch"
