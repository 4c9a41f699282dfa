# SPDX-License-Identifier: BSD-3-Clause
"""Measures laying out a program again, and moving its constants out, against cp and against exporting it again.

    ETSTREAM=PATH python program.py [--quick] FOLDER
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import measure
from inputs import exported
from measure import Time
from table import rows_of, show, show_cache_growth

ETSTREAM = os.environ["ETSTREAM"]


def quietly(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def compare(name: str, folder: Path, rounds: int) -> bool:
    """Compares the ways, with the program in the page cache."""
    program, out, weights, keys = exported(name, folder).program, folder / "out.pte", folder / "out.ptd", folder / "k"
    keys.write_text('{"1": "weight"}')
    again = [ETSTREAM, "pte", str(program), "--segment-alignment", "4096", "-o", str(out)]
    outside = [ETSTREAM, "pte", str(program), "-o", str(out), "--constants-to", str(weights)]

    def timed(command: list[str], sync: Path | None = None) -> Callable[[], Time]:
        def run() -> Time:
            for file in (out, weights):
                file.unlink(missing_ok=True)
            os.sync()
            quietly(["cat", str(program)])
            return measure.timed(command, sync)

        return run

    contenders = {
        "etstream pte": timed(again),
        "etstream pte --no-sync": timed([*again, "--no-sync"]),
        "cp, sync": timed(["cp", str(program), str(out)], out),
        "cp": timed(["cp", str(program), str(out)]),
        "--constants-to, keys given": timed([*outside, "--keys", str(keys)]),
        "--constants-to, by SHA-256": timed(outside),
    }
    times = measure.rounds(rounds, contenders)
    against = {"cp, sync": ("etstream pte", 0.9), "cp": ("etstream pte --no-sync", 0.9)}
    peak = measure.peak_of(again)
    title = f"a program laid out again: {name}, {program.stat().st_size >> 20} MiB"
    reached = show(title, rows_of(times, against, {"etstream pte": peak}))
    for file in (out, weights, keys):
        file.unlink(missing_ok=True)
    return reached and show_cache_growth("etstream pte", peak)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="the smaller one, one round")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = ["embedding of 512 MiB"] if arguments.quick else ["MobileNetV2", "embedding of 1.9 GiB"]
    reached = [compare(name, arguments.folder, 1 if arguments.quick else 5) for name in names]
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
