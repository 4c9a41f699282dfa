# SPDX-License-Identifier: BSD-3-Clause
"""Data taken out of memory, into a file that has no name."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from typing import Any

from etstream import Source

from ._cords import LazyData

_FIRST_CAPACITY = 64 << 20


class SpillFile:
    """A temporary file that data goes to. Threads may share it.

    It is made when it is first needed, and lasts until the last of its data is let go of.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file: Any = None
        # All that has room, of which the data are slices: one open descriptor serves many.
        self._room: Source | None = None
        self._used = 0
        self._known: dict[bytes, LazyData] = {}

    def hold(self, data: memoryview) -> LazyData:
        """Writes bytes to the file, but for those that are in it. Raises OSError when the disk is full."""
        digest = hashlib.sha256(data).digest()
        with self._lock:
            if digest not in self._known:
                self._known[digest] = LazyData(self._written(data), digest)
            return self._known[digest]

    def _written(self, data: memoryview) -> Source:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        offset, end = self._used, self._used + len(data)
        if self._room is None or len(self._room) < end:
            capacity = max(_FIRST_CAPACITY, 2 * end)
            # Takes no space on the disk until it is written to.
            os.ftruncate(self._file.fileno(), capacity)
            self._room = Source.descriptor(self._file.fileno(), 0, capacity)
        while self._used < end:
            left = data[self._used - offset :]
            self._used += os.pwrite(self._file.fileno(), left, self._used)
        return self._room[offset:end]
