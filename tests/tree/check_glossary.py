# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the names in docs/glossary.md exist in the headers and the sources, and that it explains no word twice.

    python3 check_glossary.py ROOT
"""

import re
import sys
from pathlib import Path

NAME = re.compile(r"`(\w+(?:::\w+)*)(?:\(\))?`")
WORD = re.compile(r"\*\*([^*]+)\*\*")


def problems_of(page: str, code: str) -> list[str]:
    """Returns a line for each name that is not in the code, and for each word that is explained twice."""
    words = set(re.findall(r"\w+", code))
    out = []
    explained: set[str] = set()
    for number, line in enumerate(page.splitlines(), 1):
        for name in NAME.findall(line):
            if not words.issuperset(name.split("::")):
                out.append(f"docs/glossary.md:{number}: {name} is not in include or src")
        for word in WORD.findall(line):
            if word.lower() in explained:
                out.append(f"docs/glossary.md:{number}: '{word}' is explained twice")
            explained.add(word.lower())
    return out


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    folders = (root / "include", root / "src")
    files = [path for folder in folders for end in ("h", "cpp") for path in folder.rglob(f"*.{end}")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    problems = problems_of((root / "docs/glossary.md").read_text(encoding="utf-8"), code)
    print("\n".join(problems) or f"the names in docs/glossary.md are in {len(files)} sources")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
