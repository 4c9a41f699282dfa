# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that are several of a kind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

_T = TypeVar("_T")


def several(argument: str, kind: str, given: Iterable[_T]) -> list[_T]:
    """A list of what is given. Raises TypeError for text, bytes or a path, whose parts nobody means."""
    if isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"{argument}: expected {kind}, found {given!r} alone: put it in a list")
    return list(given)
