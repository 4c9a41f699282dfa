# SPDX-License-Identifier: BSD-3-Clause
"""Prints the table of releases in docs/formats.md, from the results of the tests in this folder.

    python tests/field/table.py                           prints it
    python tests/field/table.py --check docs/formats.md   ends with 1, and shows it, unless the page has it
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from prepare import FIELD
from releases import CURRENT, EXECUTORCH, FLATBUFFERS, WRITERS

ASPECTS = {"read": "read, verified", "run": f"run by {CURRENT.release}", "pte": "`.pte`", "bpte": "`.bpte`", "ptd": "`.ptd`"}
WRITTEN = ("pte", "bpte", "ptd")


def cell(release: str, aspect: str, results: dict[str, dict[str, bool]]) -> str:
    """Returns "yes", "no", or the versions of flatbuffers with which the aspect passed."""
    found = {
        writer.flatbuffers: results[str(writer)][aspect] for writer in WRITERS if writer.release == release
    }
    if all(found.values()):
        return "yes"
    return ", ".join(version for version, passed in found.items() if passed) or "no"


def has_one_flatbuffers(release: str) -> bool:
    """Returns whether the release, if it uses flatbuffers, is tried with one version only."""
    used = [writer for writer in WRITERS if writer.release == release]
    return len(used) == 1 and not release.startswith(("1.0.", "1.1."))


def rows(results: dict[str, dict[str, bool]]) -> Iterable[str]:
    heads = [f"{'written byte-identically: ' if aspect == 'pte' else ''}{head}" for aspect, head in ASPECTS.items()]
    yield "| ExecuTorch | " + " | ".join(heads) + " |"
    yield "|---" * (len(ASPECTS) + 1) + "|"
    cells = [(release, [cell(release, aspect, results) for aspect in ASPECTS]) for release in EXECUTORCH]
    for alike, group in groupby(cells, key=lambda row: row[1]):
        yield f"| {', '.join(release for release, _ in group)} | " + " | ".join(alike) + " |"
    yield ""
    fewer = [(writer.release, writer.flatbuffers) for writer in WRITERS if has_one_flatbuffers(writer.release)]
    exceptions = " and ".join(f"{release} with {version} alone" for release, version in fewer)
    yield f"Releases from 1.2 on with Python's flatbuffers {', '.join(FLATBUFFERS)}, {exceptions}; those before use none."


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", type=Path, metavar="PAGE")
    arguments = parser.parse_args()
    results = json.loads((FIELD / "results.json").read_text())
    cells = [(str(writer), aspect) for writer in WRITERS for aspect in ASPECTS]
    missing = [f"{writer}: {aspect}" for writer, aspect in cells if aspect not in results.get(writer, {})]
    if missing:
        print("not tested, so there is no table:", *missing, sep="\n  ", file=sys.stderr)
        return 1
    table = "\n".join(rows(results))
    if arguments.check is None:
        print(table)
        return 0
    if f"\n{table}\n" in arguments.check.read_text():
        return 0
    print(f"{arguments.check} does not have what the tests found:\n\n{table}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
