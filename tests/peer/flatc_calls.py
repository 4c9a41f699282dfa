# SPDX-License-Identifier: BSD-3-Clause
"""Records the calls of flatc that ExecuTorch's serializers make, and makes the same calls of etstream."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from executorch.exir._serialize import _flatbuffer

WHEEL = Path(_flatbuffer.__file__).parents[2]
XNNPACK = WHEEL / "backends" / "xnnpack" / "serialization" / "schema.fbs"
PROGRAM = WHEEL / "schema" / "program.fbs"


@dataclass(frozen=True)
class Call:
    """A call of flatc in a folder that is kept, with its arguments unchanged but for the folder."""

    folder: Path
    arguments: tuple[str, ...]
    output: bytes

    @property
    def is_compile(self) -> bool:
        return "--binary" in self.arguments


def flatc(*arguments: str | Path) -> None:
    """Runs the wheel's flatc."""
    _flatbuffer._run_flatc([str(argument) for argument in arguments])


@contextmanager
def recorded(folder: Path) -> Iterator[list[Call]]:
    """Yields the calls of flatc that ExecuTorch makes, each with its input and output files in a folder of its own."""
    calls: list[Call] = []
    run = _flatbuffer._run_flatc

    def record(arguments: Sequence[str]) -> None:
        there = Path(arguments[arguments.index("-o") + 1])
        before = set(there.iterdir())
        run(arguments)
        (written,) = set(there.iterdir()) - before
        output = written.read_bytes()
        written.unlink()
        here = shutil.copytree(there, folder / f"call-{len(calls)}")
        written.write_bytes(output)
        moved = tuple(argument.replace(str(there), str(here)) for argument in arguments)
        calls.append(Call(here, moved, output))

    _flatbuffer._run_flatc = record
    try:
        yield calls
    finally:
        _flatbuffer._run_flatc = run
