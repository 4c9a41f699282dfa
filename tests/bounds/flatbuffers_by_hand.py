# SPDX-License-Identifier: BSD-3-Clause
"""Writes flatbuffers whose objects may be shared, as no builder does.

Objects are nodes of a graph without circles. An object lies behind all that refer to it, as offsets lead forward.
"""

from __future__ import annotations

import struct

SIZES = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "d": 8, "ref": 4}


class Node:
    """An object that offsets lead to."""

    def children(self) -> list[Node]:
        return []


class String(Node):
    def __init__(self, words: str | bytes) -> None:
        self.words = words.encode() if isinstance(words, str) else words

    def place(self, position: int) -> tuple[int, int]:
        """Returns where the object is, and where it ends, if it may begin at `position`, a multiple of 8."""
        return position, position + 4 + len(self.words) + 1

    def write(self, out: bytearray, places: dict[int, int]) -> None:
        at = places[id(self)]
        struct.pack_into("<I", out, at, len(self.words))
        out[at + 4 : at + 4 + len(self.words)] = self.words


class Scalars(Node):
    """A vector of scalars; `shift` moves it from the place where its elements are aligned to 16."""

    def __init__(self, kind: str, values: list[int] | list[float] | bytes) -> None:
        self.kind = kind
        self.count = len(values)
        self.bytes = values if isinstance(values, bytes) else struct.pack(f"<{len(values)}{kind}", *values)

    def place(self, position: int) -> tuple[int, int]:
        at = position + (12 - position) % 16
        return at, at + 4 + len(self.bytes)

    def write(self, out: bytearray, places: dict[int, int]) -> None:
        at = places[id(self)]
        struct.pack_into("<I", out, at, self.count)
        out[at + 4 : at + 4 + len(self.bytes)] = self.bytes


class Tables(Node):
    """A vector of tables, or of strings. An item may come any number of times."""

    def __init__(self, items: list[Node]) -> None:
        self.items = items

    def children(self) -> list[Node]:
        return self.items

    def place(self, position: int) -> tuple[int, int]:
        return position, position + 4 + 4 * len(self.items)

    def write(self, out: bytearray, places: dict[int, int]) -> None:
        at = places[id(self)]
        struct.pack_into("<I", out, at, len(self.items))
        offsets = [places[id(item)] - (at + 4 + 4 * i) for i, item in enumerate(self.items)]
        struct.pack_into(f"<{len(offsets)}I", out, at + 4, *offsets)


class Table(Node):
    """A table: its fields by their ids, each a node, or a scalar as a pair of struct's letter and the value."""

    def __init__(self, **fields: Node | tuple[str, float]) -> None:
        self.fields = {int(name[1:]): value for name, value in fields.items()}

    def children(self) -> list[Node]:
        return [value for value in self.fields.values() if isinstance(value, Node)]

    def _layout(self) -> tuple[list[tuple[int, str, object]], int, int]:
        kinds = {i: "ref" if isinstance(value, Node) else value[0] for i, value in self.fields.items()}
        order = sorted(self.fields, key=lambda i: (-SIZES[kinds[i]], i))
        rows, at = [], 4
        for i in order:
            size = SIZES[kinds[i]]
            at += -(at + 4) % size  # tables lie at 4 from a multiple of 8
            rows.append((at, kinds[i], i))
            at += size
        return rows, at, 4 + 2 * (max(self.fields, default=-1) + 1)

    def place(self, position: int) -> tuple[int, int]:
        _, size, vtable = self._layout()
        at = position + vtable + (4 - vtable) % 8  # a vtable, and then the table at 4 from a multiple of 8
        return at, at + size

    def write(self, out: bytearray, places: dict[int, int]) -> None:
        rows, size, vtable_size = self._layout()
        at = places[id(self)]
        vtable = at - vtable_size - (at - vtable_size) % 2
        struct.pack_into("<HH", out, vtable, vtable_size, size)
        struct.pack_into("<i", out, at, at - vtable)
        for offset, kind, i in rows:
            struct.pack_into("<H", out, vtable + 4 + 2 * i, offset)
            value = self.fields[i]
            if kind == "ref":
                struct.pack_into("<I", out, at + offset, places[id(value)] - (at + offset))
            else:
                struct.pack_into(f"<{kind}", out, at + offset, value[1])


def flatbuffer(root: Table, identifier: str, header: int = 0) -> bytearray:
    """Returns the flatbuffer, with `header` zero bytes behind its identifier."""
    order = _in_order(root)
    places: dict[int, int] = {}
    end = 8 + header
    for node in order:
        places[id(node)], end = node.place(end + -end % 8)
    out = bytearray(end + -end % 8)
    struct.pack_into("<I4s", out, 0, places[id(root)], identifier.encode())
    for node in order:
        node.write(out, places)
    return out


def _in_order(root: Node) -> list[Node]:
    """Returns all nodes, each behind those that refer to it."""
    referred: dict[int, int] = {id(root): 0}
    seen = [root]
    for node in seen:
        for child in {id(c): c for c in node.children()}.values():
            if id(child) not in referred:
                referred[id(child)] = 0
                seen.append(child)
            referred[id(child)] += 1
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for child in {id(c): c for c in node.children()}.values():
            referred[id(child)] -= 1
            if referred[id(child)] == 0:
                ready.append(child)
    return order
