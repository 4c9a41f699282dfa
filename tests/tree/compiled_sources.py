# SPDX-License-Identifier: BSD-3-Clause
"""Prints the sources that a build compiles for the targets in a folder.

    compiled_sources.py BUILD [FOLDER]
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path


def output_of(command: dict[str, str]) -> str:
    """Returns the output of a compile command. CMake's versions give it as a whole path, as a path in the build's
    folder or, in Debian 12, not at all."""
    words = shlex.split(command["command"])
    return os.path.join(command["directory"], command.get("output") or words[words.index("-o") + 1])


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    folder = str(build / sys.argv[2]) + os.sep if len(sys.argv) > 2 else str(build)
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    inside = [c["file"] for c in commands if output_of(c).startswith(folder)]
    print(*inside, sep="\n")
    return 0 if inside else 1


if __name__ == "__main__":
    sys.exit(main())
