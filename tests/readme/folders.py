# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the table of folders in a page has those of src/, in the order in which they may include each other.

    python3 folders.py PAGE.md ROOT
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tree"))

from check_includes import FOLDERS  # noqa: E402

ROW = re.compile(r"^\| ([*`][^|]*) \| [^|]* \|$", re.MULTILINE)
NAME = re.compile(r"`([\w/]+)`")


def main() -> int:
    page, root = Path(sys.argv[1]), Path(sys.argv[2])
    rows = [folder for names in ROW.findall(page.read_text(encoding="utf-8")) for folder in NAME.findall(names)]
    problems = [f"{page}: there is no folder {folder}" for folder in rows if not (root / "src" / folder).is_dir()]
    # A folder that has only folders stands before these.
    found = [folder for folder in rows if folder in FOLDERS or not any(f.startswith(folder + "/") for f in FOLDERS)]
    if found != FOLDERS:
        problems.append(f"{page}: the table has {found}, expected {FOLDERS}")
    print("\n".join(problems) or f"{len(rows)} folders are as check_includes.py has them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
