# SPDX-License-Identifier: BSD-3-Clause
"""Does in this process what ExecuTorch runs flatc for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from etstream import FlatbufferText
from etstream._errors import CorruptError, TooLargeError, UnsupportedError
from etstream.executorch._patches import Patch, leave_to_executorch

_COMPILE = {"--binary"}
_DECOMPILE = {"--json", "--defaults-json", "--strict-json"}
_KNOWN = _DECOMPILE | {"--raw-binary", "--size-prefixed"}


def _parsed(arguments: Sequence[str]) -> tuple[set[str], Path, Path, Path] | None:
    """Returns the options, the folder, the schema and the file in arguments of ExecuTorch's functions; None for
    others."""
    if arguments.count("-o") != 1 or len(arguments) < 5:
        return None
    options = arguments[: arguments.index("-o")]
    folder, *files = arguments[len(options) + 1 :]
    if len(files) == 3 and files[1] == "--":
        del files[1]
    if len(files) != 2 or not (set(options) == _COMPILE or _DECOMPILE <= set(options) <= _KNOWN):
        return None
    return set(options), Path(folder), Path(files[0]), Path(files[1])


def run_flatc(args: Sequence[str], flatc: Callable[[Sequence[str]], None]) -> None:
    """Does what flatc does for `args`, to the byte; runs `flatc` for arguments that ExecuTorch never gives it.

    Raises subprocess.CalledProcessError, as if flatc failed, and says why.
    """
    parsed = _parsed(args)
    if parsed is None:
        leave_to_executorch("arguments that ExecuTorch itself never gives to flatc")
        flatc(args)
        return
    options, folder, schema_path, file = parsed
    try:
        schema = FlatbufferText(schema_path)
        if options == _COMPILE:
            (folder / file.with_suffix(f".{schema.file_extension}").name).write_bytes(schema.compile(file))
            return
        text = schema.decompile(
            file, identifier="--raw-binary" not in options, size_prefixed="--size-prefixed" in options
        )
        (folder / file.with_suffix(".json").name).write_bytes(text.encode("utf-8", "surrogateescape"))
    except (CorruptError, UnsupportedError, TooLargeError) as error:
        raise subprocess.CalledProcessError(1, ["flatc", *args], stderr=str(error)) from error


def patches() -> list[Patch]:
    """Returns the patch for the function that runs flatc in ExecuTorch."""
    serialize = "executorch.exir._serialize._flatbuffer"
    return [Patch(serialize, "_run_flatc", lambda original: lambda args: run_flatc(args, original))]
