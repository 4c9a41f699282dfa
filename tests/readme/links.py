# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the targets of links in the pages of this repository exist, and the paths that they name.

    python3 links.py ROOT

A link leads to a file or a folder, or to a heading, by the anchor that GitHub gives it. A path is named in backticks and
begins with a folder of the repository; * stands for any name, and NAME for one that is yet to come.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PATH = re.compile(r"`((?:\.ci|cmake|docs|examples|include|perf|schema|src|tests)/[\w./*-]+)(?: [^`]*)?`")
YET_TO_COME = "NAME"


def anchors_of(page: Path) -> set[str]:
    """Returns the anchors of the headings: in lower case, without punctuation, with - for a space; a heading that comes
    again gets -1, -2..."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while anchor + (f"-{number}" if number else "") in found:
            number += 1
        found.add(anchor + (f"-{number}" if number else ""))
    return found


def check_page(page: Path, root: Path) -> list[str]:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    problems = []
    for link in LINK.findall(text):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            problems.append(f"{page}: {link}: there is no such file")
        elif anchor and anchor not in anchors_of(target):
            problems.append(f"{page}: {link}: there is no such heading")
    for path in PATH.findall(text):
        if YET_TO_COME not in path and not any(root.glob(path.rstrip("/"))):
            problems.append(f"{page}: `{path}` is not there")
    return problems


def main() -> int:
    root = Path(sys.argv[1])
    globs = ("*.md", "docs/**/*.md", "schema/*.md", "tests/*.md", "tests/*/*.md")
    pages = [page for pattern in globs for page in root.glob(pattern)]
    problems = [problem for page in pages for problem in check_page(page, root)]
    print("\n".join(problems) or f"all links of {len(pages)} pages lead somewhere")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
