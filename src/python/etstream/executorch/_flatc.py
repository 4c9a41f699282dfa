# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch runs flatc for, in this process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from etstream import FlatbufferText
from etstream._errors import CorruptError, TooLargeError, UnsupportedError
from etstream.executorch._patches import Patch
from etstream.executorch._usage import leave_to_executorch


@dataclass(frozen=True)
class _Call:
    """Arguments of flatc, as ExecuTorch's two functions give them."""

    options: frozenset[str]
    folder: Path
    schema: Path
    file: Path

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> _Call | None:
        """None for arguments that are others."""
        if arguments.count("-o") != 1 or len(arguments) < 5:
            return None
        options = arguments[: arguments.index("-o")]
        folder, *files = arguments[len(options) + 1 :]
        if len(files) == 3 and files[1] == "--":
            del files[1]
        if len(files) != 2 or not (set(options) == _COMPILE or _DECOMPILE <= set(options) <= _KNOWN):
            return None
        return cls(frozenset(options), Path(folder), Path(files[0]), Path(files[1]))

    def run(self) -> None:
        schema = FlatbufferText(self.schema)
        if self.options == _COMPILE:
            output = self.file.with_suffix(f".{schema.file_extension}").name
            (self.folder / output).write_bytes(schema.compile(self.file))
            return
        text = schema.decompile(
            self.file,
            strict_json=True,
            defaults=True,
            identifier="--raw-binary" not in self.options,
            size_prefixed="--size-prefixed" in self.options,
        )
        output = self.file.with_suffix(".json").name
        (self.folder / output).write_bytes(text.encode("utf-8", "surrogateescape"))


_COMPILE = {"--binary"}
_DECOMPILE = {"--json", "--defaults-json", "--strict-json"}
_KNOWN = _DECOMPILE | {"--raw-binary", "--size-prefixed"}


def run_flatc(args: Sequence[str], flatc: Callable[[Sequence[str]], None]) -> None:
    """Does what flatc does for `args`, to the byte; runs `flatc` for arguments that ExecuTorch never gives it.

    Raises subprocess.CalledProcessError, as where flatc fails, and says why.
    """
    call = _Call.parse(args)
    if call is None:
        leave_to_executorch("arguments that ExecuTorch itself never gives to flatc")
        flatc(args)
        return
    try:
        call.run()
    except (CorruptError, UnsupportedError, TooLargeError) as error:
        raise subprocess.CalledProcessError(1, ["flatc", *args], stderr=str(error)) from error


def patches() -> list[Patch]:
    """What runs flatc in ExecuTorch."""

    def replacement(original: Callable[[Sequence[str]], None]) -> Callable[[Sequence[str]], None]:
        return lambda args: run_flatc(args, original)

    return [Patch("executorch.exir._serialize._flatbuffer", "_run_flatc", replacement)]
