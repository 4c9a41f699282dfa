# SPDX-License-Identifier: BSD-3-Clause
"""Writes planned files, with the options that all functions have that write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from etstream import _core
from etstream._progress import Progress
from etstream._types import OutputLike


class WriteOptions(TypedDict, total=False):
    """The options of all functions that write. FilePlan.write() tells how an output is written.

    Keys:
        dry_run: write nothing, but check all that can be checked before. The plans are returned, and outputs may be
            missing.
        max_memory: refuse to write with more memory than this, in bytes: an int, or a str such as "16M".
        max_disk: refuse to write more bytes than this in all, such as "4G"; by default 4 times the input where names
            share data.
        sync: have the files on the disk before the function returns.
        progress: called with the bytes done and the bytes of all files; True shows a bar with tqdm.
    """

    dry_run: Annotated[bool, False]
    max_memory: Annotated[int | str | None, None]
    max_disk: Annotated[int | str | None, None]
    sync: Annotated[bool, True]
    progress: Annotated[Progress | bool | None, None]


def write(files: Sequence[tuple[_core.FilePlan, OutputLike | None]], options: Mapping[str, object]) -> None:
    """Writes each plan to its output, with the values of WriteOptions in `options`. All files appear, or none does."""
    given: dict[str, Any] = {name: options[name] for name in WriteOptions.__annotations__}
    _core.write_plans(files, **given)
