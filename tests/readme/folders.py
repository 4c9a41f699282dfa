# SPDX-License-Identifier: BSD-3-Clause
"""Proves the table of folders in a page: it has those of src/, and what one may not know, it may not include.

    python3 folders.py PAGE.md ROOT
"""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tree"))

from check_includes import MAY_INCLUDE  # noqa: E402

ROW = re.compile(r"^\| (`[^|]*`) \| [^|]* \| ([^|]*) \|$", re.MULTILINE)
NAME = re.compile(r"`([\w/]+)`")
FORMATS = {"pte", "pte/rewrite", "ptd", "bpte", "bpte/cases", "weights", "weights/rename"}


def main() -> int:
    page, root = Path(sys.argv[1]), Path(sys.argv[2])
    table = ROW.findall(page.read_text(encoding="utf-8"))
    rows = {folder: unknown for names, unknown in table for folder in NAME.findall(names)}
    problems = [f"{page}: src/{folder} is not in the table" for folder in MAY_INCLUDE.keys() - rows.keys()]
    problems += [f"{page}: there is no folder {folder}" for folder in rows if not (root / "src" / folder).is_dir()]
    for folder, unknown in rows.items():
        if "private headers" in unknown:
            continue  # which check_includes.py's OUTSIDE is about
        included = set(MAY_INCLUDE.get(folder, "").split())
        forbidden = {"formats": FORMATS, "anything else": included}.get(unknown, set(NAME.findall(unknown)))
        problems += [f"{page}: {folder} may include {known}" for known in sorted(included & forbidden)]
    print("\n".join(problems) or f"{len(rows)} folders are as check_includes.py has them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
