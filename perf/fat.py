# SPDX-License-Identifier: BSD-3-Clause
"""Measures packing programs into a fat container, against cp of them all.

    ETSTREAM=PATH python fat.py [--quick] FOLDER
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import measure
from measure import MIB, Time
from table import rows_of, show, show_cache_growth

ETSTREAM = os.environ["ETSTREAM"]
PAYLOADS = 3


def write_payloads(folder: Path, size: int) -> list[Path]:
    """Writes different payloads of one size."""
    source, paths = random.Random(1), []
    for i in range(PAYLOADS):
        paths.append(folder / f"payload_{i}")
        piece = source.randbytes(MIB)
        with paths[-1].open("wb") as file:
            for _ in range(size // MIB):
                file.write(piece)
    return paths


def compare(folder: Path, size: int, rounds: int) -> bool:
    """Compares packing with copying, with the payloads in the page cache."""
    payloads, out, copy = write_payloads(folder, size), folder / "out.fat", folder / "copy"
    pack = [ETSTREAM, "fat", *(f"p{i}={path}" for i, path in enumerate(payloads)), "-o", str(out)]
    concatenate = f"cat {' '.join(map(str, payloads))} > {copy}"

    def timed(command: list[str], sync: Path | None = None) -> Callable[[], Time]:
        def run() -> Time:
            for file in (out, copy):
                file.unlink(missing_ok=True)
            os.sync()
            subprocess.run(["cat", *payloads], stdout=subprocess.DEVNULL, check=True)
            return measure.timed(command, sync)

        return run

    contenders = {
        "etstream fat": timed(pack),
        "... --no-sync": timed([*pack, "--no-sync"]),
        "... --align 4096": timed([*pack, "--align", "4096"]),
        "... --no-dedup": timed([*pack, "--no-dedup"]),
        "cat, sync": timed(["sh", "-c", concatenate], copy),
        "cat": timed(["sh", "-c", concatenate]),
    }
    times = measure.rounds(rounds, contenders)
    against = {"cat, sync": ("... --no-dedup", 0.9), "cat": ("... --no-sync", 0.5)}
    peak = measure.peak_of(pack)
    title = f"a fat container of {PAYLOADS} payloads, {size // MIB} MiB each"
    reached = show(title, rows_of(times, against, {"etstream fat": peak}))
    for file in (out, copy, *payloads):
        file.unlink(missing_ok=True)
    return reached and show_cache_growth("etstream fat", peak)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="smaller payloads, one round")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    reached = compare(arguments.folder, (256 if arguments.quick else 1024) * MIB, 1 if arguments.quick else 5)
    print("\nall targets reached" if reached else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
