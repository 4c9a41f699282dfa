# SPDX-License-Identifier: BSD-3-Clause
"""Has memray record, for `etstream profile --memray FILE`: every allocation, of the first Python process alone."""

from __future__ import annotations

import atexit
import sys


def begin(path: str) -> None:
    try:
        import memray
    except ImportError as error:
        sys.stderr.write(
            f"etstream profile: {sys.executable} can't import memray ({error}); install it with pip\n"
        )
        raise SystemExit(1) from None
    tracker = memray.Tracker(destination=memray.FileDestination(path, overwrite=True))
    tracker.__enter__()
    atexit.register(tracker.__exit__, None, None, None)
