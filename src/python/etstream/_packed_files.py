# SPDX-License-Identifier: BSD-3-Clause
"""Packs files, and restores them."""

from __future__ import annotations

from etstream import _core
from etstream._arguments import integer
from etstream._progress import Progress
from etstream._types import OutputLike, SourceLike, StreamLike


def pack(
    source: StreamLike,
    output: OutputLike,
    *,
    base: SourceLike | None = None,
    threads: int | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> None:
    """Writes a packed file: the bytes of any file, in less space, of which any part can be read by itself.

    All functions read a packed file as the original, and pack what they write to a path that ends in ".etz".

    Args:
        source: the original, which is read once, from its first byte to its last.
        output: where the packed file goes.
        base: an earlier version of the source, which is then a file. Writes an update: what the source has that is not
            in the base, and differences from it.
        threads: how many threads code, each with up to 4 MiB of memory; by default one a processor, but at most 4. The
            packed file does not depend on it.

    progress gets 0 as the total of a descriptor or an object with read().

    Raises:
        InvalidArgumentError: the source is a packed file; or a base is given, and the source is no file.
    """
    with _core.Inputs():
        _core.pack(source, output, base, integer("threads", threads) or 0, sync, progress)


def unpack(
    source: StreamLike,
    output: OutputLike,
    *,
    base: SourceLike | None = None,
    threads: int | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> None:
    """Writes the original of a packed file, bit for bit. All hashes are checked.

    Args:
        source: the packed file, which is read once, from its first byte to its last.
        output: where the original goes. At a path it appears once all is checked.
        base: the file that an update was made from, which is compared with the hash in the update first.
        threads: how many threads decode, each with up to 4 MiB of memory; by default one a processor, but at most 4.

    progress gets 0 as the total of a descriptor or an object with read().

    Raises:
        CorruptError: the packed file is damaged; the message names file and offset.
        UnsupportedError: the source is no packed file.
        InvalidArgumentError: the source is an update and the base is missing or another file, or it is none and has a
            base.
    """
    with _core.Inputs():
        _core.unpack(source, output, base, integer("threads", threads) or 0, sync, progress)
