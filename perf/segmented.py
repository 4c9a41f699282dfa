# SPDX-License-Identifier: BSD-3-Clause
"""Measures segmented bundles of a program over the limit of BP08, against cp, xxhsum and, on xfs, sharing blocks.

    ETSTREAM=PATH python segmented.py [--quick] SCRATCH_FOLDER
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import measure
from measure import MIB, Time
from table import rows_of, show, show_cache_growth, show_limit

ETSTREAM = os.environ["ETSTREAM"]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LARGE = 8 << 30
QUICK = 1 << 30
SHARED = 10 << 30
LONGEST_SHARING = 0.05


def make_program(path: Path, size: int, *, sparse: bool = False) -> None:
    """Writes a program that is followed by bytes which nothing refers to; a check of it warns of them."""
    shutil.copy(EXAMPLES / "model.pte", path)
    piece = os.urandom(16 * MIB)
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        while not sparse and file.tell() < size:
            file.write(piece[: size - file.tell()])
        file.truncate(size)


def bundle(program: Path, out: Path, *options: str) -> list[str]:
    cases = str(EXAMPLES / "cases.json")
    return [
        *(ETSTREAM, "bundle", str(program), "--cases", cases, "--to", "segmented"),
        *("-o", str(out), *options),
    ]


def quietly(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def compare(folder: Path, size: int, rounds: int) -> bool:
    """Compares writing and checking, with the program in the page cache."""
    program, out, finished = (folder / name for name in ("program.pte", "out.bpte", "finished.bpte"))
    make_program(program, size)
    quietly(bundle(program, finished, "--no-sync"))

    def prepared(read: Path) -> None:
        out.unlink(missing_ok=True)
        os.sync()
        quietly(["cat", str(read)])

    def timed(read: Path, command: list[str], sync: Path | None = None) -> Callable[[], Time]:
        def run() -> Time:
            prepared(read)
            return measure.timed(command, sync)

        return run

    copy = ["cp", str(finished), str(out)]
    contenders = {
        "etstream": timed(program, bundle(program, out)),
        "etstream --no-hash": timed(program, bundle(program, out, "--no-hash")),
        "cp, sync": timed(finished, copy, out),
        "etstream verify": timed(finished, [ETSTREAM, "verify", str(finished)]),
        "xxhsum -H2": timed(finished, ["xxhsum", "-H2", str(finished)]),
    }
    times = measure.rounds(rounds, contenders)
    peaks = {}
    for tool, command in (
        ("etstream", bundle(program, out)),
        ("etstream --no-hash", bundle(program, out, "--no-hash")),
        ("etstream verify", [ETSTREAM, "verify", str(finished)]),
    ):
        prepared(program)
        peaks[tool] = measure.peak_of(command)
    against = {"cp, sync": ("etstream", 1.0), "etstream --no-hash": ("etstream", None)}
    against["xxhsum -H2"] = ("etstream verify", None)
    reached = show(f"a segmented bundle of {size >> 30} GiB", rows_of(times, against, peaks))
    return all([reached, *(show_cache_growth(tool, peaks[tool]) for tool in ("etstream", "etstream --no-hash"))])


def share(folder: Path) -> bool:
    """Measures the gain of sharing blocks, on xfs."""
    disk, image = folder / "disk", folder / "image"
    disk.mkdir()
    image.touch()
    os.truncate(image, 2 << 30)
    quietly(["mkfs.xfs", "-q", str(image)])
    quietly(["mount", "-o", "loop", str(image), str(disk)])
    try:
        program, out = disk / "program.pte", disk / "out.bpte"
        make_program(program, SHARED, sparse=True)
        runs = [measure.timed(bundle(program, out, "--no-hash", "--no-sync")) for _ in range(20)]
        seconds = measure.median(runs).wall
        what = f"a bundle that shares {SHARED >> 30} GiB with its program (xfs, --no-hash --no-sync)"
        return show_limit(what, seconds * 1000, LONGEST_SHARING * 1000, "ms")
    finally:
        quietly(["umount", str(disk)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="1 GiB, one round")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else LARGE
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(arguments.folder).free < 4 * size:
        print(f"{arguments.folder} has less than {4 * size >> 30} GiB free", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        reached = compare(Path(scratch), size, 1 if arguments.quick else 3)
        if os.geteuid() == 0:
            reached = share(Path(scratch)) and reached
        else:
            print("SKIPPED: sharing blocks on xfs, which only root can mount")
    print("\nall targets reached" if reached else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
