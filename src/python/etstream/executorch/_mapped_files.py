# SPDX-License-Identifier: BSD-3-Clause
"""Which range of which file lies behind memory of this process, and letting go of pages."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from etstream import Error, Source

_PAGE = mmap.PAGESIZE
_MADV_PAGEOUT = 21
# Python names it from 3.13 on.
_MAP_NORESERVE = 0x4000
# Pages of a mapping are looked up this many at a time, 8 bytes each.
_PAGEMAP_PAGES = 65536


class MappedFile:
    """A file that memory of this process is mapped from."""

    def __init__(self, path: str) -> None:
        """Raises OSError or etstream.Error if it can't be opened."""
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        self.source = Source.file(path)
        if not os.path.samestat(os.stat(path), os.fstat(self._descriptor)):
            raise FileNotFoundError(f"{path}: has been replaced")

    def map_copy_on_write(self, size: int = 0) -> mmap.mmap:
        """The file, or its first bytes, as memory of our own: its pages are the file's until written to."""
        return mmap.mmap(
            self._descriptor,
            size,
            flags=mmap.MAP_PRIVATE | _MAP_NORESERVE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
        )


@dataclass(frozen=True)
class FilePart:
    """A range of a file, in bytes."""

    file: MappedFile
    offset: int
    size: int

    def source(self) -> Source:
        return self.file.source[self.offset : self.offset + self.size]


@dataclass(frozen=True)
class _Mapping:
    start: int
    end: int
    permissions: str
    offset: int
    # Device and inode as the kernel prints them; not always those of stat (overlays, btrfs).
    file: tuple[str, str]
    path: str


def _mappings() -> Iterator[_Mapping]:
    """The file mappings of this process."""
    try:
        lines = open("/proc/self/maps", encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    with lines:
        for line in lines:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) < 6 or not fields[5].startswith("/"):
                continue
            start, end = (int(field, 16) for field in fields[0].split("-"))
            yield _Mapping(
                start,
                end,
                fields[1],
                int(fields[2], 16),
                (fields[3], fields[4]),
                fields[5].replace("\\012", "\n"),
            )


def _mapping_of(address: int, size: int) -> _Mapping | None:
    for mapping in _mappings():
        if mapping.start <= address and address + size <= mapping.end:
            return mapping
    return None


class MappedFiles:
    """Finds the files behind memory, each opened once. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[tuple[tuple[str, str], str], MappedFile | None] = {}

    def part_behind(self, address: int, size: int) -> FilePart | None:
        """The range of a file that these `size` bytes are, or None if they are not one.

        Memory that is mapped from a file but has been written to is not the file's.
        """
        mapping = _mapping_of(address, size)
        if mapping is None or not _is_unmodified(address, size):
            return None
        with self._lock:
            key = (mapping.file, mapping.path)
            if key not in self._files:
                self._files[key] = _open_mapped(mapping)
            file = self._files[key]
        if file is None:
            return None
        offset = mapping.offset + address - mapping.start
        # Behind the file's end a mapping's last page has zeros.
        return FilePart(file, offset, size) if offset + size <= len(file.source) else None


def _open_mapped(mapping: _Mapping) -> MappedFile | None:
    """Opens a mapping's file by its path, unless another file has taken that path."""
    try:
        file = MappedFile(mapping.path)
        memory = file.map_copy_on_write(1)
    except (OSError, ValueError, Error):
        return None
    # How the kernel names the file at that path shows in a mapping of it.
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ours = _mapping_of(address, 1)
    return file if ours is not None and ours.file == mapping.file else None


def _is_unmodified(address: int, size: int) -> bool:
    """Whether no page of a mapping has become a copy of this process's own."""
    first = address // _PAGE
    last = -(-(address + size) // _PAGE)
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
            while first < last:
                count = min(_PAGEMAP_PAGES, last - first)
                data = os.pread(pagemap.fileno(), count * 8, first * 8)
                if len(data) != count * 8:
                    return False
                # Bits: 63 in memory, 62 in swap space, 61 the file's page.
                states = np.frombuffer(data, dtype=np.uint64) >> np.uint64(61)
                if np.any((states >= 2) & (states & np.uint64(1) == 0)):
                    return False
                first += count
    except OSError:
        return False
    return True


def resident_bytes() -> tuple[int, int]:
    """Bytes of this process that are resident: of its own, and of mapped files."""
    with open("/proc/self/statm", "rb") as statm:
        resident, of_files = (int(pages) * _PAGE for pages in statm.read().split()[1:3])
    return resident - of_files, of_files


def give_back_freed_memory() -> None:
    """Gives pages back to the system that malloc keeps between others in use, where it is glibc's."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def let_go_of_mapped_data() -> None:
    """Takes the pages of mapped data files out of this process; they come back when touched.

    Nothing is lost: pages that were written to stay. Files that this user may neither write nor
    owns are left as they are, by the kernel's rule, and so are programs and libraries.
    """
    mappings = list(_mappings())
    libraries = {mapping.file for mapping in mappings if "x" in mapping.permissions}
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for mapping in mappings:
        if mapping.file not in libraries and mapping.end - mapping.start >= 1 << 20:
            madvise(mapping.start, mapping.end - mapping.start, _MADV_PAGEOUT)
