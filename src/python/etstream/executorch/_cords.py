# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's cords, and data in them that stays where it lies."""

from __future__ import annotations

import hashlib
import io
from typing import Any

from etstream import _core
from executorch.exir._serialize._cord import Cord, FileBackedData

# Small enough that freed ones leave no large holes among other objects.
_PIECE = 64 << 10


class LazyData(FileBackedData):
    """The bytes of a source, for a Cord or a NamedDataStore: read where they are asked for, not before.

    Length, slices, comparison, bytes() and copies are as those of bytes, and a pickle holds the bytes.
    """

    def __init__(self, source: Any, sha256: bytes | None = None) -> None:
        """`sha256` is that of the bytes, where it is known."""
        self.source = _core.Source(source)
        self._size = len(self.source)
        self._sha256 = sha256

    def prefix(self, size: int) -> bytes:
        return self.source.read(0, min(size, len(self)))

    def sha256(self) -> bytes:
        if self._sha256 is None:
            digest = hashlib.sha256()
            for offset in range(0, len(self), _PIECE):
                digest.update(self.source.read(offset, min(_PIECE, len(self) - offset)))
            self._sha256 = digest.digest()
        return self._sha256

    def to_bytes(self) -> bytes:
        return self.source.read()

    def write_to_file(self, outfile: io.BufferedIOBase) -> None:
        _core.Layout.copy(self.source).write(outfile)

    def close(self) -> None:
        pass

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


def cord_of(layout: _core.Layout) -> Cord:
    """The file that `layout` plans, as ExecuTorch's serializers return theirs."""
    return Cord(LazyData(layout.source()))
