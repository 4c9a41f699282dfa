# SPDX-License-Identifier: BSD-3-Clause
"""Takes a program apart: its flatbuffer and the graphs of its XNNPACK delegates as JSON, its segments as bytes.

    parts = Parts.of(program)
    parts.assemble()     # a program that says the same
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import executorch
from etstream import FlatbufferText
from fbs import Fbs

_PACKAGE = Path(next(iter(executorch.__path__)))
PROGRAM_SCHEMA = _PACKAGE / "schema" / "program.fbs"
XNNPACK_SCHEMA = _PACKAGE / "backends" / "xnnpack" / "serialization" / "schema.fbs"
_HEADER = 32  # the extended header and the flatbuffer's beginning make 64 bytes with the padding
_ALIGNMENT = 128
_ROUNDED = 16

# The text that stands for bytes that are not UTF-8, and these bytes, which are as many.
NOT_UTF8 = "~not-utf8~"
_NOT_UTF8_BYTES = b"~\xc3\x28\xff\xfe\xed\xa0\x80\xc0~"

Tree = dict[str, Any]


@cache
def schema_text(path: Path) -> FlatbufferText:
    return FlatbufferText(path)


@cache
def schema_tables(path: Path) -> Fbs:
    return Fbs.read(path)


def _tree_of(path: Path, flatbuffer: bytes) -> Tree:
    text = schema_text(path).decompile(flatbuffer)
    # flatc's JSON has these numbers without quotes, and is read with quotes too.
    return json.loads(re.sub(r"(?m)^(.*[ \[])(-?inf|nan)(,?)$", r'\1"\2"\3', text))


def _compiled(path: Path, tree: Tree) -> bytes:
    made = schema_text(path).compile(json.dumps(tree).encode())
    return bytes(made).replace(NOT_UTF8.encode(), _NOT_UTF8_BYTES)


def _padded(data: bytes, alignment: int) -> bytes:
    return data + b"\0" * (-len(data) % alignment)


@dataclass
class Payload:
    """The data of an XNNPACK delegate (backends/xnnpack/runtime/XNNHeader.cpp)."""

    graph: Tree
    constants: bytes

    @classmethod
    def of(cls, data: bytes) -> Payload | None:
        if data[4:8] != b"XH00":
            return None
        at, size, constants_at, constants_size = struct.unpack_from("<IIIQ", data, 10)
        graph = _tree_of(XNNPACK_SCHEMA, data[at : at + size])
        return cls(graph, data[constants_at : constants_at + constants_size])

    def assemble(self) -> bytes:
        graph = _padded(_compiled(XNNPACK_SCHEMA, self.graph), _ROUNDED)
        header = struct.pack("<4s4sHIIIQ", b"", b"XH00", 30, 32, len(graph), 32 + len(graph), len(self.constants))
        return _padded(header, 32) + graph + self.constants


@dataclass
class Parts:
    tree: Tree
    segments: list[bytes]
    payloads: dict[int, Payload] = field(default_factory=dict)  # the payloads by segment

    @classmethod
    def of(cls, program: bytes) -> Parts:
        size, base = struct.unpack_from("<QQ", program, 16)
        tree = _tree_of(PROGRAM_SCHEMA, program[:size])
        places = [(base + each["offset"], each["size"]) for each in tree["segments"]]
        out = cls(tree, [program[at : at + size] for at, size in places])
        for plan in tree["execution_plan"]:
            for delegate in plan["delegates"]:
                if delegate["id"] == "XnnpackBackend" and delegate["processed"]["location"] == "SEGMENT":
                    index = delegate["processed"]["index"]
                    payload = Payload.of(out.segments[index])
                    if payload:
                        out.payloads[index] = payload
        return out

    def with_payloads(self, *changed: int) -> bytes:
        """Returns the program, with these segments made anew of their payloads, at its end."""
        if not changed:
            return self.assemble()
        segments = list(self.segments)
        before = [dict(each) for each in self.tree["segments"]]
        try:
            for index in changed:
                segments[index] = self.payloads[index].assemble()
                at = max(each["offset"] + each["size"] for each in self.tree["segments"])
                self.tree["segments"][index].update(offset=-(-at // _ALIGNMENT) * _ALIGNMENT, size=len(segments[index]))
            return self.assemble(segments)
        finally:
            self.tree["segments"][:] = before

    def assemble(self, segments: list[bytes] | None = None) -> bytes:
        """Returns the program. Segments lie where they were, whatever the tree now says of them."""
        flatbuffer = _compiled(PROGRAM_SCHEMA, self.tree)
        (root,) = struct.unpack_from("<I", flatbuffer)
        body = flatbuffer[8:]
        size = len(flatbuffer) + _HEADER
        tail = self._tail(segments)
        base = -(-size // _ALIGNMENT) * _ALIGNMENT if tail else 0
        header = struct.pack("<4sIQQQ", b"eh00", _HEADER, size, base, len(tail))
        start = struct.pack("<I", root + _HEADER) + flatbuffer[4:8] + header + body
        return _padded(start, _ALIGNMENT) + tail if tail else start

    def _tail(self, segments: list[bytes] | None) -> bytes:
        if segments is None:
            return self._as_it_was
        out = bytearray()
        for place, data in zip(self.tree["segments"], segments, strict=True):
            end = place["offset"] + len(data)
            out.extend(b"\0" * max(0, end - len(out)))
            out[place["offset"] : end] = data
        return bytes(out)

    def __post_init__(self) -> None:
        self._as_it_was = self._tail(self.segments)
