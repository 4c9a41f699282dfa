# SPDX-License-Identifier: BSD-3-Clause
"""How far writing is, for whoever wants to see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from etstream._warnings import warn

Progress = Callable[[int, int], object]


class Bar:
    """A bar by tqdm, in bytes. It is closed at the end, or when it is let go of."""

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(unit="B", unit_scale=True, unit_divisor=1024)

    def __call__(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        if done == total:
            self._bar.close()


def callback(progress: Progress | bool | None) -> Progress | None:
    """What to call with the bytes done and all there are; None for nothing."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        warn("progress=True shows nothing: tqdm is not installed")
        return None
    return Bar(tqdm)
