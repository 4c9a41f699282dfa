# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's cords, and data in them that stays where it lies."""

from __future__ import annotations

import hashlib
import io
from typing import Any

from etstream import _core
from executorch.exir._serialize._cord import Cord, FileBackedData

_PIECE = 1 << 20


class LazyData(FileBackedData):
    """The bytes of a source, for a Cord or a NamedDataStore: read where they are asked for, not before."""

    def __init__(self, source: Any) -> None:
        self.source = _core.Source(source)
        self._size = len(self.source)
        self._sha256: bytes | None = None

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


def cord_of(layout: _core.Layout) -> Cord:
    """The file that `layout` plans, as ExecuTorch's serializers return theirs."""
    return Cord(LazyData(layout.source()))
