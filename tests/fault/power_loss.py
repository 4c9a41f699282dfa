# SPDX-License-Identifier: BSD-3-Clause
"""Computes what a disk may hold after a loss of power, as far as POSIX promises anything.

The calls of a run are replayed on a model of the folder that it writes into. Every change that no fsync has settled may
be on the disk or not, independently of the changes before and after it: each piece of a file's data, its size, its
permissions, each name in a folder. A rename is one change, of both names.

A file whose changes are not settled has 2^n contents. All of them are one content exactly if the settled content is
that one and no change alone makes another of it, so n + 1 contents are looked at. Folders have few names, so all their
possible contents are looked at.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from expectations import Call
from workplace import NEIGHBOURS

TEMPORARY = re.compile(r"\..*\.etstream-[0-9a-f]{16}\.tmp")

KEEP_SIZE = 1  # a flag of fallocate
EXCHANGE = 2  # a flag of renameat2
NO_CHANGE = ("flock", "fadvise", "sync_file_range", "utimensat", "close")

# The bytes, and the calls that changed permissions and owners.
View = tuple[bytes, frozenset[int]]


@dataclass(frozen=True)
class Change:
    """A change that a file has whole or not at all."""

    offset: int = 0
    data: bytes = b""
    truncates: bool = False
    attribute: int | None = None  # the call that changes it

    def apply(self, view: View) -> View:
        content, attributes = view
        if self.truncates:
            return b"", attributes
        if self.attribute is not None:
            return content, attributes | {self.attribute}
        content = content.ljust(self.offset, b"\0")
        return content[: self.offset] + self.data + content[self.offset + len(self.data) :], attributes


@dataclass(eq=False)
class File:
    settled: View
    changes: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        self.settled = self.now()
        self.changes.clear()

    def now(self) -> View:
        view = self.settled
        for change in self.changes:
            view = change.apply(view)
        return view

    def views(self) -> set[View]:
        return {self.settled, *(change.apply(self.settled) for change in self.changes)}


@dataclass(eq=False)
class Folder:
    settled: Names = field(default_factory=dict)
    changes: list[dict[str, Node | None]] = field(default_factory=list)
    attributes: list[int] = field(default_factory=list)  # the calls that no sync has settled

    def sync(self) -> None:
        self.settled = self.now()
        self.changes.clear()
        self.attributes.clear()

    def now(self) -> Names:
        names = self.settled
        for change in self.changes:
            names = renamed(names, change)
        return names

    def views(self) -> list[Names]:
        """Returns all names that the folder may hold."""
        seen = {frozenset(self.settled.items())}
        for change in self.changes:
            seen |= {frozenset(renamed(dict(names), change).items()) for names in seen}
        return [dict(names) for names in seen]


Node = File | Folder
Names = dict[str, Node]


def renamed(names: Names, change: dict[str, Node | None]) -> Names:
    return {name: node for name, node in {**names, **change}.items() if node is not None}


def folder_of(path: Path) -> Folder:
    return Folder({e.name: folder_of(e) if e.is_dir() else File((e.read_bytes(), frozenset())) for e in path.iterdir()})


class Disk:
    """The disk with the folder `root` and its content, before the calls of a run. Paths begin with the folder's
    name."""

    def __init__(self, root: Path) -> None:
        self.root = folder_of(root)
        self.name = root.name
        self.open: dict[str, Node | None] = {}
        self.offsets: dict[str, int] = {}

    def _parts(self, path: str) -> tuple[str, ...] | None:
        """Returns the names in a path; None for a path that is not in the folder."""
        parts = PurePath(os.path.normpath(path)).parts
        return parts[1:] if parts[:1] == (self.name,) else None

    def find(self, path: str) -> Node | None:
        parts = self._parts(path)
        node: Node | None = self.root if parts is not None else None
        for part in parts or ():
            node = node.now().get(part) if isinstance(node, Folder) else None
        return node

    def _change(self, call: Call, *changes: tuple[str, Node | None]) -> None:
        """Changes names, all of one folder, at once."""
        folders = {os.path.dirname(path) for path, _ in changes}
        folder = self.find(folders.pop())
        if folders or not isinstance(folder, Folder):
            raise NotImplementedError(f"{call}: changes names in several folders, or outside of {self.name}")
        folder.changes.append({os.path.basename(path): node for path, node in changes})

    def replay(self, call: Call, written: bytes) -> None:
        """Does on the model what the call does. `written` are the bytes of a write."""
        if call.result is None or call.result < 0 or call.name in NO_CHANGE or call.about == "fd 1":
            return
        if call.name in ("open for writing", "open a folder"):
            self._open(call)
        elif call.name == "mkdir":
            self._change(call, (call.about, Folder()))
        elif call.name == "unlinkat" and call.source:
            self.open[call.source].changes.append({call.about: None})
        elif call.name in ("unlink", "unlinkat", "rmdir"):
            self._change(call, (call.about, None))
        elif call.name == "rename" or call.name.startswith("renameat"):
            other = self.find(call.about) if call.flags & EXCHANGE else None
            self._change(call, (call.source, other), (call.about, self.find(call.source)))
        else:
            self._change_opened(call, written)

    def _open(self, call: Call) -> None:
        node = self.find(call.about)
        if call.name == "open for writing":
            if node is None:
                node = File((b"", frozenset()))
                self._change(call, (call.about, node))
            elif call.flags & os.O_TRUNC:
                node.changes.append(Change(truncates=True))
        descriptor = f"fd {call.result}"
        self.offsets[descriptor] = 0
        self.open[descriptor] = node

    def _change_opened(self, call: Call, written: bytes) -> None:
        node = self.open[call.about]
        if call.name in ("fsync", "fdatasync"):
            node.sync()
        elif call.name == "syncfs":
            self.sync()
        elif call.name in ("fchmod", "fchown") and isinstance(node, Folder):
            node.attributes.append(call.index)
        elif call.name in ("fchmod", "fchown"):
            node.changes.append(Change(attribute=call.index))
        elif call.name == "write":
            node.changes.append(Change(self.offsets[call.about], written))
            self.offsets[call.about] += len(written)
        elif call.name != "fallocate" or not call.flags & KEEP_SIZE:
            raise NotImplementedError(f"{call}: not known what it does to the disk")

    def sync(self) -> None:
        for node in self._all(self.root):
            node.sync()

    def _all(self, folder: Folder) -> Iterator[Node]:
        yield folder
        for node in folder.now().values():
            yield from self._all(node) if isinstance(node, Folder) else (node,)

    def unsettled(self) -> int:
        return sum(len(node.changes) for node in self._all(self.root))

    def outcomes(self, paths: tuple[str, ...]) -> list[tuple[tuple[Node | None, ...], bool]]:
        """Returns what may be at the paths, together, and whether a temporary file is then in a folder of theirs."""
        ways = {path: self._parts(path) or () for path in paths}
        return [(tuple(map(found.get, paths)), left) for found, left in outcomes_in(self.root, ways)]

    def may_hold(self, path: str) -> set[tuple[str, Node]]:
        """Returns all names that may be in the folder at `path`, with what they may stand for."""
        folder = self.find(path)
        return {entry for names in folder.views() for entry in names.items()} if isinstance(folder, Folder) else set()


def outcomes_in(folder: Folder, ways: dict[str, tuple[str, ...]]) -> Iterator[tuple[dict[str, Node], bool]]:
    """Yields the outcomes, see Disk.outcomes(), of the paths that lead on from the folder by these names."""
    inner = {way[0] for way in ways.values() if len(way) > 1}
    for names in folder.views():
        found = {path: names[way[0]] for path, way in ways.items() if len(way) == 1 and way[0] in names}
        left = any(map(TEMPORARY.fullmatch, names.keys() - NEIGHBOURS))
        choices = []
        for name in inner:
            if isinstance(node := names.get(name), Folder):
                rest = {path: way[1:] for path, way in ways.items() if len(way) > 1 and way[0] == name}
                choices.append(list(outcomes_in(node, rest)))
        for choice in itertools.product(*choices):
            everything = found | {path: node for more, _ in choice for path, node in more.items()}
            yield everything, left or any(also for _, also in choice)


def possible_contents(node: Node | None) -> list[object]:
    """Returns the contents that a node may have; they are different if something that matters is not settled."""
    if isinstance(node, File):
        return list(node.views())
    if node is None:
        return [None]
    inner = {name: possible_contents(each) for name, each in node.settled.items()}
    settled = not node.changes and not node.attributes and all(len(each) == 1 for each in inner.values())
    return [{name: each[0] for name, each in inner.items()}, *([] if settled else ["what no sync has settled"])]
