# SPDX-License-Identifier: BSD-3-Clause
"""An export that refers to its constants instead of copying them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch
from etstream import InvalidArgumentError, _core

from ._cords import FileBackedData, LazyData, cord_patches
from ._mapped_files import (
    MappedFiles,
    give_back_freed_memory,
    let_go_of_mapped_data,
    resident_bytes,
)
from ._node_dependencies import NodeDependencies
from ._patches import Patch, PatchSet, instead
from ._spill import SpillFile

# Smaller constants are copied as ever: they are part of what a program's metadata takes.
_COPIED_BELOW = 16 << 10
# By how much what is resident may grow before pages are let go of, and how often that is looked at.
_FILE_SLACK = 16 << 20
_OWN_SLACK = 8 << 20
_LOOK_EVERY_SECONDS = 0.005


class _InHand(threading.local):
    """What a thread is busy with."""

    # The storage of the constant that is being emitted.
    emitted: torch.UntypedStorage | None = None
    # The memory that was asked for last, and what stands for it.
    packed: tuple[Any, bytes | LazyData] = (None, b"")


class _Export:
    """What one use of `low_memory_export` knows while it lasts."""

    def __init__(self, spill: str | os.PathLike[str]) -> None:
        self._files = MappedFiles()
        self._spill = SpillFile(spill)
        self._in_hand = _InHand()

    @contextlib.contextmanager
    def emitting(self, storage: torch.UntypedStorage | None) -> Iterator[None]:
        self._in_hand.emitted = storage
        try:
            yield
        finally:
            self._in_hand.emitted = None

    def constant(self, array: ctypes.Array[Any]) -> bytes | LazyData:
        """Stands for the bytes of the constant that is being emitted."""
        held = self._file_range(ctypes.addressof(array), len(array))
        storage = self._in_hand.emitted
        if held is None and storage is not None and len(array) >= _COPIED_BELOW:
            return LazyData(storage)
        return bytes(array) if held is None else held

    def packed(self, array: ctypes.Array[Any]) -> bytes | LazyData:
        """Stands for the bytes of a tensor that was packed for a delegate and is dropped next."""
        # They are asked for twice: for their hash, and to be stored.
        if self._in_hand.packed[0] is not array:
            held = self._file_range(ctypes.addressof(array), len(array))
            if held is None and len(array) >= _COPIED_BELOW:
                held = self._spill.hold(memoryview(array).cast("B"))
            self._in_hand.packed = (array, bytes(array) if held is None else held)
        return self._in_hand.packed[1]

    def stored(self, data: bytes | FileBackedData) -> bytes | FileBackedData:
        """Stands for data that a delegate's backend stores under a name."""
        if isinstance(data, bytes) and len(data) >= _COPIED_BELOW:
            return self._spill.hold(memoryview(data))
        return data

    def mapped(self, tensor: torch.Tensor) -> LazyData | None:
        """Stands for a tensor that is stored so, if a file lies behind it."""
        if tensor.device.type != "cpu" or not tensor.is_contiguous() or tensor.is_neg() or tensor.is_conj():
            return None
        return self._file_range(tensor.data_ptr(), tensor.nbytes)

    def copied(
        self, storage: torch.UntypedStorage, memo: dict[Any, Any]
    ) -> torch.UntypedStorage | None:
        """A copy of a storage that shares a file's pages until one of both is written to.

        None if no file lies behind it. `memo` is deepcopy's; it carries the mappings of one copy.
        """
        if storage.device.type != "cpu" or storage.nbytes() < _COPIED_BELOW:
            return None
        part = self._files.part_behind(storage.data_ptr(), storage.nbytes())
        if part is None:
            return None
        mappings = memo.setdefault("etstream", {})
        if part.file not in mappings:
            mappings[part.file] = part.file.map_copy_on_write()
        return torch.frombuffer(
            mappings[part.file], dtype=torch.uint8, count=part.size, offset=part.offset
        ).untyped_storage()

    def _file_range(self, address: int, size: int) -> LazyData | None:
        if size < _COPIED_BELOW:
            return None
        part = self._files.part_behind(address, size)
        return None if part is None else LazyData(part.source())


_current: ContextVar[_Export | None] = ContextVar("etstream_low_memory_export", default=None)


@contextlib.contextmanager
def low_memory_export(
    spill: str | os.PathLike[str] | None = None, *, limit: int | None = None
) -> Iterator[None]:
    """Within it, large blocks of memory lie in a file, and an export refers to its constants.

        with etstream.executorch.low_memory_export(spill="/data", limit=4 << 30):
            program = to_edge(torch.export.export(model, inputs)).to_executorch()
        etstream.executorch.save_program(program, "model.pte")

    Blocks of 1 MiB and more that anything in the process allocates (torch, numpy, Python, other
    libraries) come from a file without a name in the folder `spill`, which has to be on a disk
    with room for them (default: /var/tmp, since /tmp is often in memory; better beside the
    output). They are the page cache's then, not memory of the process. Of them `limit` bytes stay
    in memory, looked at every 20 ms; without a limit, as many as the system leaves there. Where
    the disk is full, allocating fails, with a MemoryError or what a library makes of it.
    Blocks last as long as they are used, also after the end, and may be freed and resized then.

    The files are the same, byte for byte. What the program's constants become:

    - tensors that are mapped from a file (a checkpoint loaded with safetensors, or with
      `torch.load(mmap=True)`) and were not changed since: ranges of that file, which has to stay
      where and as it is until the program is saved;
    - other tensors of the program: views of their memory, which must not change before the
      program is saved;
    - what backends store under names, such as XNNPACK's weights and Vulkan's: ranges of the
      checkpoint where XNNPACK leaves the bytes as they are, or a backend stores the tensor
      itself; otherwise of another temporary file in `spill`, which takes as much room as they do.

    Copies of the program that lowering makes share a mapped checkpoint's pages, and pages that
    any step maps in are let go of again while it goes on. What partitioners note of which node
    depends on which is kept in bits instead of sets. Python's collector leaves what is there at
    its beginning alone (gc.freeze(), unless the caller did that) and so finds dropped graphs soon.

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
        etstream.Error: when the program is saved, if a checkpoint has changed or gone meanwhile.
    """
    if spill is None:
        spill = "/var/tmp" if os.path.isdir("/var/tmp") else tempfile.gettempdir()
    if limit is not None and limit <= 0:
        raise InvalidArgumentError(f"a limit of {limit} bytes: at least 1 has to stay in memory")
    with _in_place:
        token = _current.set(_Export(spill))
        try:
            with _large_blocks_in(spill, limit), _garbage_found_soon(), _resident_pages_bounded():
                yield
        finally:
            _current.reset(token)


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
        gc.collect()  # counts those that it looks at anew: none
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


@contextlib.contextmanager
def _resident_pages_bounded() -> Iterator[None]:
    """Lets go of mapped data files' pages and of freed memory, from a thread, when there is more of them."""
    ended = threading.Event()

    def watch() -> None:
        own, of_files = resident_bytes()
        while not ended.wait(_LOOK_EVERY_SECONDS):
            now_own, now_of_files = resident_bytes()
            if now_of_files > of_files + _FILE_SLACK:
                let_go_of_mapped_data()
                of_files = resident_bytes()[1]
            if now_own > own + _OWN_SLACK:
                give_back_freed_memory()
                own = resident_bytes()[0]

    watcher = threading.Thread(target=watch, name="etstream low_memory_export", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _in_export(
    method: Callable[[_Export], Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a replacement that asks the export of the calling thread, if it is in one."""

    def replacement(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            export = _current.get()
            return (original if export is None else method(export))(*args, **kwargs)

        return call

    return replacement


def _emit_tensor(original: Callable[..., Any]) -> Callable[..., Any]:
    """Around the emitter's method for a tensor: says whose memory it is going to copy."""

    @functools.wraps(original)
    def emit(self: Any, spec: Any, *args: Any, **kwargs: Any) -> Any:
        export = _current.get()
        if export is None:
            return original(self, spec, *args, **kwargs)
        with export.emitting(spec.storage):
            return original(self, spec, *args, **kwargs)

    return emit


def _store(original: Callable[..., Any]) -> Callable[..., Any]:
    """Around the method of NamedDataStore that keeps data."""

    @functools.wraps(original)
    def store(self: Any, key: str, data: Any, *args: Any, **kwargs: Any) -> None:
        export = _current.get()
        original(self, key, data if export is None else export.stored(data), *args, **kwargs)

    return store


def _tensor_data(original: Callable[..., Any]) -> Callable[..., Any]:
    """Around the function that gives NamedDataStore a tensor's bytes."""

    @functools.wraps(original)
    def data_of(tensor: torch.Tensor) -> Any:
        export = _current.get()
        mapped = None if export is None else export.mapped(tensor)
        return original(tensor) if mapped is None else mapped

    return data_of


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


def _copy_storage(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
        export = _current.get()
        copies = memo.setdefault("torch", {})
        if export is not None and self._cdata not in copies:
            copied = export.copied(self, memo)
            if copied is not None:
                copies[self._cdata] = copied
        return original(self, memo)

    return deepcopy


def _copy_parameter(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def deepcopy(self: Any, memo: dict[Any, Any]) -> Any:
        export = _current.get()
        if export is not None and id(self) not in memo and _owns_its_storage(self):
            copied = export.copied(self.untyped_storage(), memo)
            if copied is not None:
                data = torch.empty(0, dtype=self.dtype).set_(copied, 0, self.shape, self.stride())
                memo[id(self)] = torch.nn.Parameter(data, self.requires_grad)
        return original(self, memo)

    return deepcopy


def _owns_its_storage(parameter: Any) -> bool:
    """Whether it is an ordinary parameter and all of its storage, in order."""
    return (
        type(parameter) is torch.nn.Parameter
        and type(parameter.data) is torch.Tensor
        and parameter.layout == torch.strided
        and parameter.device.type == "cpu"
        and parameter.is_contiguous()
        and parameter.nbytes == parameter.untyped_storage().nbytes()
    )


def _patches() -> list[Patch]:
    emitter = "executorch.exir.emit._emitter"
    node_visitor = "executorch.backends.xnnpack.operators.node_visitor"
    named_data = "executorch.exir._serialize._named_data_store"
    group_partitioner = "executorch.exir.backend.canonical_partitioners.group_partitioner"
    constant = _in_export(lambda export: export.constant)
    packed = _in_export(lambda export: export.packed)
    dependencies = _in_export(lambda _: NodeDependencies)
    hashes = instead(_Hashes(hashlib))
    return [
        Patch(emitter, "bytes", instead(constant(bytes)), only_there=True),
        Patch(emitter, "hashlib", hashes, only_there=True),
        Patch(f"{emitter}:_Emitter", "_tensor_spec_to_evalue", _emit_tensor),
        Patch(node_visitor, "bytes", instead(packed(bytes)), only_there=True),
        Patch(node_visitor, "hashlib", hashes, only_there=True),
        Patch(named_data, "hashlib", hashes, only_there=True),
        Patch(f"{named_data}:NamedDataStore", "_add_named_data_to_map", _store),
        Patch(named_data, "_tensor_to_bytes", _tensor_data),
        Patch("torch.fx.passes.infra.partitioner", "_DependencyViewer", dependencies),
        Patch(group_partitioner, "_DependencyViewer", dependencies),
        Patch("torch.storage:_StorageBase", "__deepcopy__", _copy_storage),
        Patch("torch.nn:Parameter", "__deepcopy__", _copy_parameter),
        *cord_patches(),
    ]


_in_place = PatchSet("low_memory_export()", _patches)
