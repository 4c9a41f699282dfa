# SPDX-License-Identifier: BSD-3-Clause
"""`python -m etstream` is the command that is installed beside the package."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path


def _command() -> Path | None:
    """The command that the package was installed with."""
    for file in metadata.files("etstream") or []:
        if file.name == "etstream" and file.parent.name == "bin":
            return Path(str(file.locate())).resolve()
    return None


def main() -> None:
    """Becomes the command, with the arguments of this process."""
    command = _command()
    if command is None or not command.exists():
        raise SystemExit("etstream: the command is not installed beside the package: pip install etstream")
    os.execv(command, ["etstream", *sys.argv[1:]])


if __name__ == "__main__":
    main()
