# SPDX-License-Identifier: BSD-3-Clause
"""Proves that tests/README.md tells which test covers each source.

    python3 check_tests_page.py ROOT

A source in src/ has a test of its own, by its name, or stands in the page's table under its folder. A row without names
is for a whole folder of WHOLE, whose sources need no test each. The table names no source that has a test of its own.
"""

import re
import sys
from pathlib import Path

WHOLE = {"cli", "python", "executorch"}
ROW = re.compile(r"^\| `([\w/]+)/`(?:: ([^|]+))? \| ([^|]+) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
SYSTEM = re.compile(r"_(posix|linux|apple)$")


def name_of(source: Path) -> str:
    """Returns a source's name as its test has it, which is the same on every system."""
    return SYSTEM.sub("", source.stem)


def sources_of(root: Path) -> set[tuple[str, str]]:
    """Returns the folder and the name of each source that needs a test."""
    found = {(path.parent.relative_to(root / "src"), name_of(path)) for path in (root / "src").rglob("*.cpp")}
    return {(str(folder), name) for folder, name in found if folder.parts[:1] and folder.parts[0] not in WHOLE}


def check(root: Path) -> list[str]:
    page = "tests/README.md"
    rows = ROW.findall((root / page).read_text(encoding="utf-8"))
    sources = sources_of(root)
    own = {(folder, name) for folder, name in sources if (root / "tests/cpp" / folder / f"{name}_test.cpp").exists()}
    named: set[tuple[str, str]] = set()
    problems = []
    for folder, names, tests in rows:
        if not names and folder not in WHOLE:
            problems.append(f"{page}: the row of {folder}/ names no sources")
        for one in [(folder, name) for name in QUOTED.findall(names)]:
            source = "/".join(one)
            if one not in sources:
                problems.append(f"{page}: there is no source {source}")
            elif one in own:
                problems.append(f"{page}: {source} has a test of its own, and needs no row")
            elif one in named:
                problems.append(f"{page}: {source} stands in two rows")
            named.add(one)
        paths = QUOTED.findall(tests)
        if not paths:
            problems.append(f"{page}: a row of {folder}/ names no test")
        for path in paths:
            if not (root / (path if path.startswith("tests/") else f"tests/cpp/{path}")).exists():
                problems.append(f"{page}: there is no {path}")
    for folder, name in sorted(sources - own - named):
        problems.append(f"src/{folder}/{name}: neither tests/cpp/{folder}/{name}_test.cpp nor a row of {page} tests it")
    missing = WHOLE - {folder for folder, names, _ in rows if not names}
    problems += [f"{page}: there is no row for {folder}/" for folder in sorted(missing)]
    return problems


def main() -> int:
    root = Path(sys.argv[1])
    problems = check(root)
    count = len(sources_of(root))
    print("\n".join(problems) or f"tests/README.md tells which test covers each of {count} sources")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
