# SPDX-License-Identifier: BSD-3-Clause
"""Treats bytes that lie in a file like any other bytes, for as long as anyone refers to them."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
from pathlib import Path

import etstream
import pytest
from etstream import _core
from etstream.executorch import _runtime

CONTENT = os.urandom(3 * 4096 + 5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(CONTENT)
    return tmp_path / "file"


def mappings_of(path: Path) -> int:
    return Path("/proc/self/maps").read_text().count(str(path))


@pytest.mark.parametrize("offset", [0, 16, 4096, 4112])
@pytest.mark.parametrize("size", [1, 100, 4096, 4096 + 5])
def test_they_are_as_others(file: Path, offset: int, size: int) -> None:
    expected = CONTENT[offset : offset + size]
    held = _core.FileBytes(etstream.Source.file(file, offset, size))
    found = held.bytes
    assert type(found) is bytes and len(found) == size and found == expected and hash(found) == hash(expected)
    assert sys.getsizeof(found) == sys.getsizeof(expected)
    assert found[-1] == expected[-1] and bytes(memoryview(found)) == expected and found + b"" == expected
    assert {expected: 1}[found] == 1
    del found


def test_a_zero_is_behind_them_at_the_end_of_a_page(file: Path) -> None:
    kept: list[object] = []
    for _ in range(20):
        other = mmap.mmap(-1, mmap.PAGESIZE)  # the pages that would be behind them
        other.write(b"x" * mmap.PAGESIZE)
        held = _core.FileBytes(etstream.Source.file(file, 0, mmap.PAGESIZE))
        kept += [other, held]
        begin = id(held.bytes) + bytes.__basicsize__ - 1
        assert ctypes.string_at(begin, mmap.PAGESIZE + 1) == CONTENT[: mmap.PAGESIZE] + b"\0"


@pytest.mark.parametrize("offset", [0, 16, mmap.PAGESIZE])
def test_a_zero_is_behind_them_where_the_file_goes_on(file: Path, offset: int) -> None:
    held = _core.FileBytes(etstream.Source.file(file, offset, 100))
    begin = id(held.bytes) + bytes.__basicsize__ - 1
    assert ctypes.string_at(begin, 101) == CONTENT[offset : offset + 100] + b"\0"
    assert file.read_bytes() == CONTENT


def test_the_mapping_goes_with_the_last_reference_and_not_before(file: Path) -> None:
    held = _core.FileBytes(etstream.Source(file))
    assert held.bytes == CONTENT and mappings_of(file) == 1
    del held
    gc.collect()
    assert mappings_of(file) == 0
    view = memoryview(_core.FileBytes(etstream.Source(file)).bytes)
    gc.collect()
    # The object is gone, but its bytes stay where they are for good.
    assert mappings_of(file) == 1 and view == CONTENT
    del view
    gc.collect()
    assert mappings_of(file) == 1


@pytest.mark.parametrize("source", [etstream.Source(b"memory"), pytest.param(None, id="unaligned"), etstream.Source(b"")])
def test_what_does_not_lie_so_is_copied(file: Path, source: etstream.Source | None) -> None:
    source = etstream.Source.file(file, 8, 100) if source is None else source
    with pytest.raises(etstream.UnsupportedError):
        _core.FileBytes(source)
    assert _runtime.LoadableBytes(source).bytes == source.read()
