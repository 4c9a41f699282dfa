# SPDX-License-Identifier: BSD-3-Clause
"""Runs the command that is installed beside the package, as `python -m etstream`."""

from __future__ import annotations

import os
import signal
import sys
from importlib import metadata
from pathlib import Path


def main() -> None:
    """Replaces this process by the command that the package was installed with, with the same arguments."""
    files = metadata.files("etstream") or []
    found = [Path(str(one.locate())).resolve() for one in files if one.name == "etstream" and one.parent.name == "bin"]
    if not found or not found[0].exists():
        raise SystemExit("etstream: the command is not installed beside the package: pip install etstream")
    # Python ignores these, and so would the command and those that it runs.
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    os.execv(found[0], ["etstream", *sys.argv[1:]])


if __name__ == "__main__":
    main()
