# SPDX-License-Identifier: BSD-3-Clause
"""Proves that texts for people are printed in one place: src/present/print.h, which lets no control character through.

    python3 check_printing.py ROOT
"""

import re
import sys
from pathlib import Path

PRINTS = re.compile(r"\bstd::(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|fwrite|cout|cerr)\b")
# The files that print other things than words: JSON, which has escapes of its own; pages made from our own words; a
# bar.
OTHERS = {"print.cpp", "json.cpp", "inspect_command.cpp", "documentation.cpp", "terminal_posix.cpp"}


def main() -> int:
    root = Path(sys.argv[1])
    files = [path for folder in ("cli", "files", "present") for path in sorted((root / "src" / folder).rglob("*.cpp"))]
    problems = [
        f"{path.relative_to(root)}:{number}: {match[0]}: print by src/present/print.h"
        for path in files
        if path.name not in OTHERS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := PRINTS.search(line))
    ]
    print("\n".join(problems) or f"{len(files)} files print by src/present/print.h")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
