# SPDX-License-Identifier: BSD-3-Clause
"""ETRecords written a piece at a time.

ExecuTorch serializes each program of a record to one JSON text, with the delegates' data, and what they were made from,
in base64 inside it. Here the same code runs, but puts a mark where such data belongs. When the text is written, the
data takes the places of the marks. The record is the same, byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import copyreg
import pickle
import re
import secrets
import time
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from zipfile import ZipFile, ZipInfo

import torch
from etstream.executorch._cords import FileBackedData
from etstream.executorch._patches import Patch, instead, module_with

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_RECORD = "executorch.devtools.etrecord._etrecord"
_EXPORT_SERIALIZE = "executorch.exir.serde.export_serialize"
_SERDE = "executorch.exir.serde.serialize"
NEEDS = (
    f"{_EXPORT_SERIALIZE}:serialize_torch_artifact",
    f"{_RECORD}:ETRecordReservedFileNames.EDGE_DIALECT_EXPORTED_PROGRAM",
    f"{_EXPORT_SERIALIZE}:_reduce_fake_tensor",
    f"{_SERDE}:serialize",
    "torch._subclasses:FakeTensor",
)

# The number of bytes that are encoded at once: a multiple of 3, so that base64 needs no padding between them.
_CHUNK = 3 << 18

_Write = Callable[[Any], object]


@dataclass(frozen=True)
class _Content:
    """Bytes that are made as they are written."""

    size: int
    write_to: Callable[[_Write], object]
    """Hands all bytes to its argument, in order."""


class _Pickler(pickle.Pickler):
    """Pickles fake tensors in ExecuTorch's way."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from executorch.exir.serde.export_serialize import _reduce_fake_tensor
        from torch._subclasses import FakeTensor

        super().__init__(*args, **kwargs)
        self.dispatch_table = ChainMap({FakeTensor: _reduce_fake_tensor}, cast(Any, copyreg.dispatch_table))


def _sink(write: _Write) -> Any:
    """Returns the part of a file that `torch.save` needs."""
    return SimpleNamespace(write=write, flush=lambda: None)


def _artifact(artifact: Any) -> _Content:
    """Returns the bytes that `torch.save` makes of tensors.

    They are made twice: first to learn their size, so that errors are raised before anything is written, and again when
    they are written.
    """

    def save(write: _Write) -> None:
        pickling = SimpleNamespace(__name__="pickle", Pickler=_Pickler)
        torch.save(artifact, _sink(write), pickle_module=pickling)

    size = 0

    def count(data: Any) -> None:
        nonlocal size
        size += len(data)

    save(count)
    return _Content(size, save)


def _buffer(data: Any) -> _Content:
    """Returns bytes in memory as content."""
    view = memoryview(data).cast("B")
    return _Content(len(view), lambda write: write(view))


def _lazy(data: FileBackedData) -> _Content:
    """Returns named data as content that is read when it is written."""
    return _Content(len(data), lambda write: data.write_to_file(_sink(write)))


def _base64(content: _Content) -> _Content:
    def write_to(write: _Write) -> None:
        rest = bytearray()

        def encode(data: Any) -> None:
            view = memoryview(data).cast("B")
            if rest:
                taken = min(len(view), -len(rest) % 3)
                rest.extend(view[:taken])
                view = view[taken:]
                if len(rest) % 3:
                    return
                write(binascii.b2a_base64(rest, newline=False))
                rest.clear()
            whole = len(view) // 3 * 3
            for begin in range(0, whole, _CHUNK):
                write(binascii.b2a_base64(view[begin : min(begin + _CHUNK, whole)], newline=False))
            rest.extend(view[whole:])

        content.write_to(encode)
        write(binascii.b2a_base64(rest, newline=False))

    return _Content((content.size + 2) // 3 * 4, write_to)


class _Deferred:
    """The contents that marks stand for.

    Marks are letters and digits, which JSON leaves as they are however often a text is put inside another, and
    nothing that is serialized has them by chance.
    """

    def __init__(self) -> None:
        self._key = secrets.token_hex(16)
        self._contents: list[_Content] = []

    def mark(self, content: _Content) -> bytes:
        self._contents.append(content)
        return f"{self._key}x{len(self._contents) - 1}x".encode()

    def text(self, marked: bytes) -> _Content:
        """Returns the text `marked` with the contents in the places of their marks."""
        parts = re.split(f"{self._key}x([0-9]+)x".encode(), marked)
        pieces = [self._contents[int(part)] if i % 2 else _buffer(part) for i, part in enumerate(parts)]

        def write_to(write: _Write) -> None:
            for piece in pieces:
                piece.write_to(write)

        return _Content(sum(piece.size for piece in pieces), write_to)


_deferred: ContextVar[_Deferred | None] = ContextVar("etstream_deferred", default=None)
"""The marks of the program that this thread writes, and the data that goes there; None while it writes none."""


def _b64encode(data: Any, altchars: Any = None) -> bytes:
    """Returns a mark instead of base64 while a record is written."""
    deferred = _deferred.get()
    if deferred is None:
        return base64.b64encode(data, altchars)
    return deferred.mark(_base64(data if isinstance(data, _Content) else _buffer(data)))


@contextlib.contextmanager
def _deferring() -> Iterator[_Deferred]:
    deferred = _Deferred()
    token = _deferred.set(deferred)
    try:
        yield deferred
    finally:
        _deferred.reset(token)


def _defer_torch_artifact(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda artifact: original(artifact) if _deferred.get() is None else _artifact(artifact)


def _encode(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Wraps the encoder's method for values that JSON can't express, as named data may be of any kind."""

    def encode(encoder: Any, value: Any) -> Any:
        deferred = _deferred.get()
        if deferred is not None and isinstance(value, FileBackedData):
            return deferred.mark(_base64(_lazy(value))).decode()
        return original(encoder, value)

    return encode


def _write_entry(archive: ZipFile, name: str, content: _Content) -> None:
    """Writes an entry like `ZipFile.writestr`, of a size that is known before it is written."""
    entry = ZipInfo(name, time.localtime()[:6])
    entry.external_attr = 0o600 << 16
    entry.file_size = content.size
    with archive.open(entry, "w") as file:
        content.write_to(file.write)
    if entry.file_size != content.size:
        raise RuntimeError(f"{name}: {entry.file_size} bytes were written, of {content.size} planned")


def _write_program(archive: ZipFile, name: str, program: ExportedProgram) -> None:
    from executorch.exir.serde import serialize as serde

    with _deferring() as deferred:
        artifact = serde.serialize(program)
    entries = {
        name: deferred.text(artifact.exported_program),
        f"{name}_state_dict": artifact.state_dict,
        f"{name}_constants": artifact.constants,
        f"{name}_example_inputs": artifact.example_inputs,
    }
    for entry, content in entries.items():
        _write_entry(archive, entry, _buffer(content) if isinstance(content, bytes) else content)


def _save_exported_program(
    _: Any, archive: ZipFile, module_name: str, method_name: str, program: ExportedProgram
) -> None:
    _write_program(archive, f"{module_name}/{method_name}" if method_name else str(module_name), program)


def _save_edge_dialect_program(_: Any, archive: ZipFile, method_name: str, program: ExportedProgram) -> None:
    from executorch.devtools.etrecord._etrecord import ETRecordReservedFileNames

    folder = ETRecordReservedFileNames.EDGE_DIALECT_EXPORTED_PROGRAM
    _write_program(archive, f"{folder}/{method_name}", program)


def patches() -> list[Patch]:
    """Returns the patches for functions that write ETRecords in ExecuTorch."""
    record, encode = f"{_RECORD}:ETRecord", module_with(base64, b64encode=_b64encode)
    return [
        Patch(record, "_save_exported_program", instead(_save_exported_program)),
        Patch(record, "_save_edge_dialect_program", instead(_save_edge_dialect_program)),
        Patch(_SERDE, "base64", encode, only_there=True),
        Patch(_EXPORT_SERIALIZE, "base64", encode, only_there=True),
        Patch(_EXPORT_SERIALIZE, "serialize_torch_artifact", _defer_torch_artifact, only_there=True),
        Patch(f"{_EXPORT_SERIALIZE}:EnumEncoder", "default", _encode),
    ]
