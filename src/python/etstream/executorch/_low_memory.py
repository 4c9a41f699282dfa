# SPDX-License-Identifier: BSD-3-Clause
"""Exports with large blocks of memory in a file, and refers to constants instead of copying them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import field
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import torch
from etstream import _core
from etstream._arguments import size
from etstream._package import warn
from etstream.results import Result

from ._cords import LazyData, cord_patches
from ._key_names import recording
from ._patches import Patch, PatchSet, instead, module_with

# The size in bytes below which constants are copied as ever: they are part of what a program's metadata takes.
_COPIED_BELOW = 16 << 10


class _HeapUse(NamedTuple):
    blocks: int = 0
    spilled: int = 0
    let_go: int = 0
    refused: int = 0


class LowMemoryReport(Result, frozen=False):
    """A report of what low_memory_export() has done so far, also while it goes on. Sizes are in bytes."""

    heap: Literal["here", "etstream run", "none"] = "none"
    """The heap that keeps large blocks in a file: that of this process, that of `etstream run`, or none."""
    viewed: int = 0
    """The size of constants that the program refers to where they lie."""
    copied: int = 0
    """The size of constants that were copied."""
    fell_back: Counter[str] = field(default_factory=Counter)
    """The numbers of times that something was done as without low_memory_export(), by the reason."""
    overhead: float = 0.0
    """The part of `seconds` in which the block was entered and left: functions were replaced, the heap began and ended,
    and Python's collector ran."""
    _use: Callable[[], _HeapUse] = _HeapUse
    _seconds: Callable[[], float] = float

    @property
    def blocks(self) -> int:
        """The number of large blocks that the whole process allocated in the file meanwhile; 0 under `etstream run`,
        whose --report tells of them."""
        return self._use().blocks

    @property
    def spilled(self) -> int:
        """The most bytes that large blocks had in the file at one time, since the process's outermost block began."""
        return self._use().spilled

    @property
    def let_go(self) -> int:
        """The bytes of large blocks that were taken out of memory for the limit."""
        return self._use().let_go

    @property
    def refused(self) -> int:
        """The number of blocks that the disk had no room for."""
        return self._use().refused

    @property
    def seconds(self) -> float:
        """The seconds that the block has taken so far, or took."""
        return self._seconds()

    def _values(self) -> dict[str, Any]:
        also = ("blocks", "spilled", "let_go", "refused", "seconds")
        return {**super()._values(), **{name: getattr(self, name) for name in also}}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<etstream.executorch.LowMemoryReport: {'; '.join(self._lines())}>"

    def _lines(self) -> list[str]:
        lines = [
            f"large blocks: {self.blocks:,} in a file, {self.spilled:,} bytes at a time at most"
            if self.heap == "here"
            else f"large blocks: {'those of `etstream run`' if self.heap != 'none' else 'in memory'}",
            f"constants: {self.viewed:,} bytes referred to, {self.copied:,} copied",
            f"time: {self.seconds:.1f} s, {self.overhead:.1f} s of it to enter and leave",
        ]
        if self.let_go:
            lines.append(f"let go of for the limit: {self.let_go:,} bytes")
        if self.refused:
            lines.append(f"no room on the disk: {self.refused:,} times")
        return [*lines, *(f"as without it: {reason}: {times:,}" for reason, times in self.fell_back.items())]


_report: ContextVar[LowMemoryReport | None] = ContextVar("etstream_low_memory_report", default=None)
"""The report of the innermost block that this thread is in."""
_emitted: ContextVar[torch.UntypedStorage | None] = ContextVar("etstream_emitted", default=None)
"""The storage of the constant that is being emitted."""


@contextlib.contextmanager
def low_memory_export(
    spill: str | os.PathLike[str] | None = None,
    *,
    limit: int | str | None = None,
    freeze: bool = True,
    names: bool = False,
) -> Iterator[LowMemoryReport]:
    """Keeps large blocks of memory in a file, and makes an export refer to its constants, while a `with` block runs.

        with etstream.executorch.low_memory_export(spill="/data", limit="4G") as report:
            program = to_edge(torch.export.export(model, inputs)).to_executorch()
        print(report)
        etstream.executorch.save_program(program, "model.pte")

    Blocks of 16 KiB and more that anything in the process allocates (torch, numpy, Python, other libraries) come from a
    file without a name in the folder `spill`, which has to be on a disk with room for them (default: $TMPDIR, or
    /var/tmp, since /tmp is often in memory; better beside the output). They then belong to the page cache, not to the
    process's memory. At most `limit` bytes of them, an int or "4G", at least 1 MiB, stay in memory, which is checked
    every 20 ms; without a limit, as many stay as the system leaves there. If the disk is full, an allocation fails,
    with a MemoryError or what a library makes of it. Blocks last as long as they are used, also after the end, and may
    be freed and resized then.

    The program is the same, byte for byte. Its constants of 16 KiB and more are views of the tensors' memory, not
    copies. They must not change before the program is saved; if they are mapped from a checkpoint, that file must not
    change either. With `freeze` Python's collector ignores the objects that exist at the beginning (gc.freeze(), unless
    the caller did that), and so finds dropped graphs soon; without it, the heap of a process with many objects holds
    several dropped graphs. With `names` the export notes which parameter becomes which key of named data, for
    save_program(..., names=True).

    The call may be nested, and several threads may enter it at once. For blocks of memory it acts on the whole process,
    all its threads, while any thread is within; the folder and the limit of the thread that entered first hold until
    all have left. In all else it acts on the thread that enters it. At its end, also after an error, all is as before,
    except that etstream from then on takes part in freeing memory and in loading libraries. The exported program may be
    used and saved afterwards. Blocks that exist when the process forks, or when a later use names another folder or
    limit, become memory of the process as they are written to.

    A library must not free a large block that was allocated within with an address of free() that it looked up at run
    time (dlsym, ctypes), or kept from before: the process would end. Under `etstream run` the heap is there already,
    with the folder and the limit of the command, and `limit` is ignored.

    With ExecuTorch before 1.5 the whole export, to_executorch() too, must be within.

    Yields a LowMemoryReport, which grows as the export goes on. If this system or processor has no such heap, it warns,
    and still refers to constants.

    Raises:
        ImportError: this ExecuTorch or this torch lacks something that is replaced meanwhile, which the message names.
        etstream.NotFoundError, etstream.IoError: the folder is not there, or can't be written to.
        etstream.InvalidArgumentError: the folder is in memory itself (tmpfs), its file system can't reserve room, a
            limit of the process's (ulimit -v, -d, -f) leaves too little, or `limit` is below 1 MiB.
        OSError: the folder is full.
    """
    kept = size("limit", limit, least=_core.least_heap_limit)
    begin = entered = left = time.monotonic()
    report = LowMemoryReport(_seconds=lambda: time.monotonic() - begin)
    collected = _garbage_found_soon() if freeze else contextlib.nullcontext()
    try:
        noted = recording if names else contextlib.nullcontext()
        heap = _large_blocks_in("" if spill is None else spill, kept, report)
        with noted, _in_place, _told_to(report), heap, collected:
            entered = time.monotonic()
            try:
                yield report
            finally:
                left = time.monotonic()
    finally:
        seconds = time.monotonic() - begin
        report._seconds = lambda: seconds
        report.overhead = seconds - (left - entered)


@contextlib.contextmanager
def _told_to(report: LowMemoryReport) -> Iterator[None]:
    """Reports what this thread does with constants in `report`, and in the reports around it."""
    outer = _report.get()
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)
        if outer is not None:
            outer.viewed += report.viewed
            outer.copied += report.copied
            outer.fell_back += report.fell_back


@contextlib.contextmanager
def _large_blocks_in(folder: str | os.PathLike[str], limit: int | None, report: LowMemoryReport) -> Iterator[None]:
    """Keeps the large blocks of the whole process in a file in the folder, and `limit` bytes of them in memory."""
    if not hasattr(_core, "start_heap"):
        reason = f"large blocks stay in memory: there is no heap for {platform.system()} on {platform.machine()}"
        warn(f"low_memory_export(): {reason}")
        report.fell_back[reason] += 1
        yield
        return
    if not _core.start_heap(folder, limit or 0):
        report.heap = "etstream run"
        if limit is not None:
            warn("low_memory_export(): limit is not looked at under `etstream run`, whose own holds")
        yield
        return
    report.heap = "here"
    if limit is not None and not _core.heap_keeps_limit():
        reason = "the limit is not kept: /proc does not tell what this process has in memory"
        warn(f"low_memory_export(): {reason}")
        report.fell_back[reason] += 1
    blocks, _, _, let_go, refused = _core.heap_use()

    def use() -> _HeapUse:
        now = _core.heap_use()
        return _HeapUse(now[0] - blocks, now[2], now[3] - let_go, now[4] - refused)

    report._use = use
    try:
        yield
    finally:
        at_the_end = use()
        report._use = lambda: at_the_end
        _core.stop_heap()


@contextlib.contextmanager
def _garbage_found_soon() -> Iterator[None]:
    """Makes Python's collector look only at objects that are made from now on, and so look often.

    Graphs are cycles. Among the objects of all imported modules, few are a graph's, and the collector would wait for
    more of them while several dropped graphs are still there.
    """
    gc.collect()
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
        gc.collect()  # sets the collector's count of older objects to none
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


def _emit_tensor(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the emitter's method for a tensor, and notes whose memory it is going to copy."""

    @functools.wraps(original)
    def emit(self: Any, spec: Any, *args: Any, **kwargs: Any) -> Any:
        token = _emitted.set(spec.storage if _report.get() is not None else None)
        try:
            return original(self, spec, *args, **kwargs)
        finally:
            _emitted.reset(token)

    return emit


def _constant(array: ctypes.Array[Any]) -> bytes | LazyData:
    """Replaces bytes() in the emitter: refers to a large constant instead of copying it."""
    storage, report = _emitted.get(), _report.get()
    if storage is None or report is None:
        return bytes(array)
    if len(array) < _COPIED_BELOW:
        report.copied += len(array)
        report.fell_back["a constant of less than 16 KiB is copied"] += 1
        return bytes(array)
    report.viewed += len(array)
    return LazyData(storage)


def _sha256(data: Any = b"") -> Any:
    """Replaces hashlib.sha256() in the emitter: takes LazyData as well as bytes."""
    if not isinstance(data, LazyData):
        return hashlib.sha256(data)
    return SimpleNamespace(digest=data.sha256, hexdigest=lambda: data.sha256().hex())


def _patches() -> list[Patch]:
    emitter = "executorch.exir.emit._emitter"
    return [
        Patch(emitter, "bytes", instead(_constant), only_there=True),
        Patch(emitter, "hashlib", module_with(hashlib, sha256=_sha256), only_there=True),
        Patch(f"{emitter}:_Emitter", "_tensor_spec_to_evalue", _emit_tensor),
        *cord_patches(),
    ]


_in_place = PatchSet("low_memory_export()", _patches)
