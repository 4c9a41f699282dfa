# SPDX-License-Identifier: BSD-3-Clause
"""Prints the sources that a build compiles for the targets in a folder.

    compiled_sources.py BUILD [FOLDER]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    folder = str(build / sys.argv[2]) + os.sep if len(sys.argv) > 2 else str(build)
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    # CMake's versions give outputs as whole paths, or as paths in the build's folder.
    inside = [c["file"] for c in commands if os.path.join(c["directory"], c["output"]).startswith(folder)]
    print(*inside, sep="\n")
    return 0 if inside else 1


if __name__ == "__main__":
    sys.exit(main())
