# SPDX-License-Identifier: BSD-3-Clause
"""Reads the tables, unions and enums of a .fbs file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

INTEGERS = {
    "byte": (-(2**7), 2**7 - 1),
    "ubyte": (0, 2**8 - 1),
    "short": (-(2**15), 2**15 - 1),
    "ushort": (0, 2**16 - 1),
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "long": (-(2**63), 2**63 - 1),
    "ulong": (0, 2**64 - 1),
}
_OTHER_NAMES = {"int64": "long", "uint64": "ulong", "int32": "int", "uint32": "uint"}


@dataclass(frozen=True)
class Field:
    """A field of a table. `type` is the type of the elements if the field is a vector."""

    name: str
    type: str
    is_vector: bool


@dataclass
class Fbs:
    tables: dict[str, list[Field]] = field(default_factory=dict)
    unions: dict[str, dict[str, str]] = field(default_factory=dict)  # the members and their tables
    enums: dict[str, str] = field(default_factory=dict)  # the types that they are stored as
    root: str = ""

    @classmethod
    def read(cls, path: Path) -> Fbs:
        """Reads a file, and the files that it includes."""
        out = cls()
        text = re.sub(r"//.*", "", path.read_text())
        for name in re.findall(r'include "(.*?)"', text):
            included = cls.read(path.parent / name)
            out.tables |= included.tables
            out.unions |= included.unions
            out.enums |= included.enums
        for kind, name, base, body in re.findall(r"(table|union|enum)\s+(\w+)\s*(?::\s*(\w+))?\s*{(.*?)}", text, re.S):
            if kind == "enum":
                out.enums[name] = base
            elif kind == "union":
                members = (member.partition(":") for member in body.split(",") if member.strip())
                out.unions[name] = {key.strip(): (table or key).strip() for key, _, table in members}
            else:
                out.tables[name] = _fields(body)
        out.root = re.findall(r"root_type\s+(\w+)", text)[0] if "root_type" in text else ""
        return out


def _fields(body: str) -> list[Field]:
    out = []
    for name, vector, scalar, rest in re.findall(r"(\w+)\s*:\s*(?:\[\s*(\w+)\s*\]|(\w+))([^;]*);", body):
        if "deprecated" not in rest:
            kind = vector or scalar
            out.append(Field(name, _OTHER_NAMES.get(kind, kind), bool(vector)))
    return out
