# SPDX-License-Identifier: BSD-3-Clause
"""Reports how far writing has come, to whoever wants to see it."""

from __future__ import annotations

from collections.abc import Callable

from etstream._warnings import warn

Progress = Callable[[int, int], object]


def callback(progress: Progress | bool | None) -> Progress | None:
    """Returns the function to call with the bytes done and the bytes in all; None for no reports."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        warn("progress=True shows nothing: tqdm is not installed")
        return None
    bar = tqdm(unit="B", unit_scale=True, unit_divisor=1024)  # closes at the end, or when it is freed

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return show
