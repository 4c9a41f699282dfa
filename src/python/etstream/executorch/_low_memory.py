# SPDX-License-Identifier: BSD-3-Clause
"""An export whose large blocks lie in a file, and that refers to its constants instead of copying them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch
from etstream import InvalidArgumentError, _core

from ._cords import LazyData, cord_patches
from ._patches import Patch, PatchSet, instead

# Smaller constants are copied as ever: they are part of what a program's metadata takes.
_COPIED_BELOW = 16 << 10

_is_exporting: ContextVar[bool] = ContextVar("etstream_is_exporting", default=False)
_emitted: ContextVar[torch.UntypedStorage | None] = ContextVar("etstream_emitted", default=None)
"""The storage of the constant that is being emitted."""


@contextlib.contextmanager
def low_memory_export(
    spill: str | os.PathLike[str] | None = None, *, limit: int | None = None
) -> Iterator[None]:
    """Within it, large blocks of memory lie in a file, and an export refers to its constants.

        with etstream.executorch.low_memory_export(spill="/data", limit=4 << 30):
            program = to_edge(torch.export.export(model, inputs)).to_executorch()
        etstream.executorch.save_program(program, "model.pte")

    Blocks of 16 KiB and more that anything in the process allocates (torch, numpy, Python, other
    libraries) come from a file without a name in the folder `spill`, which has to be on a disk
    with room for them (default: $TMPDIR, or /var/tmp, since /tmp is often in memory; better beside
    the output). They are the page cache's then, not memory of the process. Of them `limit` bytes stay
    in memory, looked at every 20 ms; without a limit, as many as the system leaves there. Where
    the disk is full, allocating fails, with a MemoryError or what a library makes of it.
    Blocks last as long as they are used, also after the end, and may be freed and resized then.

    The program is the same, byte for byte. Its constants of 16 KiB and more are views of the
    tensors' memory, not copies. They must not change before the program is saved; where they are
    mapped from a checkpoint, neither may that file. Python's collector leaves what is there at the
    beginning alone (gc.freeze(), unless the caller did that), and so finds dropped graphs soon.

    It may be nested, and entered by several threads at once. For blocks it acts on the whole
    process, all its threads, while any thread is within; the folder and the limit of the one that
    entered first hold until all have left. For all else it acts on the thread that enters it. At
    its end, also after an error, all is as before, but that memory is freed, and libraries are
    loaded, by way of etstream from then on. The program that comes out of it may be used and saved
    after it. Blocks that are there when the process forks, or when a later use names another folder
    or limit, become memory of the process as they are written to.

    A library may not free a large block from within with an address of free() that it looked up at
    run time (dlsym, ctypes), or keeps from before: the process would end. Under `etstream run` the
    heap is there already, with the folder and the limit of the command, and `limit` is not looked
    at.

    With ExecuTorch before 1.5 all of it, to_executorch() too, is to be within.

    Raises:
        ImportError: what this ExecuTorch or this torch does not have of what is replaced meanwhile.
        etstream.NotFoundError, etstream.IoError: the folder is not there, or can't be written to.
        etstream.InvalidArgumentError: it is in memory itself (tmpfs), its file system can't reserve
            room, or the limit is not positive.
        OSError: the folder is full.
    """
    if limit is not None and limit <= 0:
        raise InvalidArgumentError(f"a limit of {limit} bytes: at least 1 has to stay in memory")
    with _in_place:
        token = _is_exporting.set(True)
        try:
            with _large_blocks_in("" if spill is None else spill, limit), _garbage_found_soon():
                yield
        finally:
            _is_exporting.reset(token)


@contextlib.contextmanager
def _large_blocks_in(folder: str | os.PathLike[str], limit: int | None) -> Iterator[None]:
    """Has the large blocks of the whole process lie there, of which so many bytes stay in memory."""
    is_ours = _core.start_heap(folder, limit or 0)
    try:
        yield
    finally:
        if is_ours:
            _core.stop_heap()


@contextlib.contextmanager
def _garbage_found_soon() -> Iterator[None]:
    """Has Python's collector look only at what comes to be from now on, and so look often.

    Graphs are cycles. Beside the objects of all that was imported, few are a graph's, and the
    collector would wait for more of them while several that were dropped are still there.
    """
    gc.collect()
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
        gc.collect()  # counts those that it looks at again: none
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


def _emit_tensor(original: Callable[..., Any]) -> Callable[..., Any]:
    """Around the emitter's method for a tensor: says whose memory it is going to copy."""

    @functools.wraps(original)
    def emit(self: Any, spec: Any, *args: Any, **kwargs: Any) -> Any:
        token = _emitted.set(spec.storage if _is_exporting.get() else None)
        try:
            return original(self, spec, *args, **kwargs)
        finally:
            _emitted.reset(token)

    return emit


def _constant(array: ctypes.Array[Any]) -> bytes | LazyData:
    """Takes the place of bytes() in the emitter."""
    storage = _emitted.get()
    if storage is None or len(array) < _COPIED_BELOW:
        return bytes(array)
    return LazyData(storage)


class _Hashes:
    """The module hashlib, with a sha256 that takes what stands for bytes."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def sha256(self, data: Any = b"") -> Any:
        return _KnownHash(data) if isinstance(data, LazyData) else self._module.sha256(data)


class _KnownHash:
    def __init__(self, data: LazyData) -> None:
        self.digest = data.sha256

    def hexdigest(self) -> str:
        return self.digest().hex()


def _patches() -> list[Patch]:
    emitter = "executorch.exir.emit._emitter"
    return [
        Patch(emitter, "bytes", instead(_constant), only_there=True),
        Patch(emitter, "hashlib", instead(_Hashes(hashlib)), only_there=True),
        Patch(f"{emitter}:_Emitter", "_tensor_spec_to_evalue", _emit_tensor),
        *cord_patches(),
    ]


_in_place = PatchSet("low_memory_export()", _patches)
