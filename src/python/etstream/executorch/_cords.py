# SPDX-License-Identifier: BSD-3-Clause
"""Makes ExecuTorch's cords take data that stays where it lies."""

from __future__ import annotations

import functools
import hashlib
import io
from typing import Any

from etstream import _core
from etstream._types import SourceLike
from etstream.executorch._patches import Patch, instead, needed


class _InNoCord:
    """A stand-in for the base class of LazyData before ExecuTorch 1.5, whose cords take bytes alone."""


def _base_of_lazy_data() -> Any:
    try:
        from executorch.exir._serialize import _cord
    except Exception:  # ExecuTorch's modules may raise anything; functions that need them say so
        return _InNoCord
    return getattr(_cord, "FileBackedData", _InNoCord)


_CORDS = "executorch.exir._serialize._cord"
FileBackedData: Any = _base_of_lazy_data()

# The bytes that are read at once, few enough that freed pieces leave no large holes among other objects.
_PIECE = 64 << 10


class LazyData(FileBackedData):  # type: ignore[misc]
    """The bytes of a source, for a Cord or a NamedDataStore, which are read only when they are asked for.

    Length, slices, comparison, bytes() and copies work as for bytes, and a pickle holds the bytes. Before ExecuTorch
    1.5, cords take LazyData only within low_memory_export().
    """

    def __init__(self, source: SourceLike) -> None:
        self.source = _core.Source(source)
        self._sha256: bytes | None = None

    def __repr__(self) -> str:
        return f"<etstream.executorch.LazyData of {len(self)} bytes: {self.source.name}>"

    def __len__(self) -> int:
        return len(self.source)

    def prefix(self, size: int) -> bytes:
        """Returns the first bytes, `size` or all that there are."""
        return self.source.read(0, min(size, len(self)))

    def sha256(self) -> bytes:
        """Returns the SHA-256 of the bytes, which are read at the first call only."""
        if self._sha256 is None:
            digest = hashlib.sha256()
            for offset in range(0, len(self), _PIECE):
                digest.update(self.source.read(offset, min(_PIECE, len(self) - offset)))
            self._sha256 = digest.digest()
        return self._sha256

    def to_bytes(self) -> bytes:
        """Returns all bytes, in memory."""
        return self.source.read()

    def write_to_file(self, outfile: io.BufferedIOBase) -> None:
        """Writes the bytes to a binary file."""
        _core.FilePlan.copy(self.source).write(outfile)

    def close(self) -> None:
        """Does nothing, as a source keeps no file open; ExecuTorch calls it."""

    def __getitem__(self, index: int | slice) -> Any:
        if not isinstance(index, slice):
            return self.source.read(range(len(self))[index], 1)[0]
        start, stop, step = index.indices(len(self))
        return self.source.read(start, max(0, stop - start)) if step == 1 else self.to_bytes()[index]

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (bytes, LazyData)):
            return NotImplemented
        if len(self) != len(other):
            return False
        digest = other.sha256() if isinstance(other, LazyData) else hashlib.sha256(other).digest()
        return self.sha256() == digest

    def __hash__(self) -> int:
        return hash(self.sha256())

    def __deepcopy__(self, memo: dict[Any, Any]) -> LazyData:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return bytes, (self.to_bytes(),)


@functools.cache
def _cord_class() -> Any:
    """Returns a class of cords that take LazyData."""
    (cord,) = needed("etstream.executorch", f"{_CORDS}:Cord")
    if FileBackedData is not _InNoCord:
        return cord

    class LazyCord(cord):  # type: ignore[misc, valid-type]
        """A cord that takes LazyData, as those of later releases do."""

        def __bytes__(self) -> bytes:
            return b"".join(map(bytes, self._buffers))

        def append(self, data: Any) -> None:
            self._buffers += data._buffers if isinstance(data, cord) else [data]
            self._byte_size += len(data)

        def write_to_file(self, outfile: io.BufferedIOBase) -> None:
            for item in self._buffers:
                if isinstance(item, LazyData):
                    item.write_to_file(outfile)
                else:
                    outfile.write(item)

    return LazyCord


def cord_of(plan: _core.FilePlan) -> Any:
    """Returns the planned file as a cord, as ExecuTorch's serializers return theirs."""
    return _cord_class()(LazyData(plan.source()))


def cord_patches() -> list[Patch]:
    """Returns the patches that make ExecuTorch's own serializers take LazyData."""
    return [] if FileBackedData is not _InNoCord else [Patch(_CORDS, "Cord", instead(_cord_class()))]
