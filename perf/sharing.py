# SPDX-License-Identifier: BSD-3-Clause
"""Measures moving the weights that programs have in common into one file, against reading every input once.

    ETSTREAM=PATH python sharing.py [--quick] SCRATCH_FOLDER

Three programs have the same weights, as named data, and lie in the page cache. cat reads them; cp of one writes as much
as etstream does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import measure
from measure import MIB, Time
from table import rows_of, show, show_cache_growth

ETSTREAM = os.environ["ETSTREAM"]
SIZE = 1 << 30  # the size of each program
QUICK = 256 << 20
PIECES = 64
NAMES = ("portable", "xnnpack", "int8")


def write_programs(folder: Path, size: int) -> list[Path]:
    """Writes programs of a method that does nothing, with the same named data, and a piece of data of their own."""
    source = random.Random(1)
    with (folder / "data").open("wb") as data:
        for _ in range(size // MIB + len(NAMES)):
            data.write(source.randbytes(MIB))
    piece = size // PIECES
    programs = []
    for i, name in enumerate(NAMES):
        places = {f"weight.{j}": (j * piece, piece) for j in range(PIECES)}
        places[f"own.{i}"] = (size + i * MIB, MIB)
        method = {
            "name": "forward",
            "container_meta_type": {},
            "values": [{"val_type": "Int", "val": {}}],
            "inputs": [0],
            "outputs": [0],
            "chains": [{"instructions": []}],
            "operators": [],
            "delegates": [],
            "non_const_buffer_sizes": [0],
        }
        description = {
            "version": 0,
            "execution_plan": [method],
            "segments": [
                {"data": {"file": "data", "offset": offset, "size": length}} for offset, length in places.values()
            ],
            "named_data": [{"key": key, "segment_index": j} for j, key in enumerate(places)],
        }
        (folder / "program.json").write_text(json.dumps(description))
        programs.append(folder / f"{name}.pte")
        quietly([ETSTREAM, "pte", str(folder / "program.json"), "-o", str(programs[-1]), "--no-sync"])
    return programs


def quietly(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def compare(folder: Path, size: int, rounds: int) -> bool:
    inputs = [str(path) for path in write_programs(folder, size)]
    (folder / "data").unlink()
    weights, out, copy = folder / "shared.ptd", folder / "out", folder / "copy"
    share = [ETSTREAM, "share", *inputs, "--weights-to", str(weights), "--out-dir", str(out)]

    def prepared(run: Callable[[], Time]) -> Callable[[], Time]:
        def prepare_and_run() -> Time:
            for path in (weights, copy):
                path.unlink(missing_ok=True)
            shutil.rmtree(out, ignore_errors=True)
            os.sync()
            quietly(["cat", *inputs])
            return run()

        return prepare_and_run

    read = ["cat", *inputs]
    contenders = {
        "share --dry-run": lambda: measure.timed([ETSTREAM, "share", *inputs, "--dry-run"]),
        "cat of every input": lambda: measure.timed(read),
        "share": lambda: measure.timed(share),
        "cat, cp of one, sync": lambda: added(measure.timed(read), measure.timed(["cp", inputs[0], str(copy)], copy)),
        "share --no-sync": lambda: measure.timed([*share, "--no-sync"]),
        "cat, cp of one": lambda: added(measure.timed(read), measure.timed(["cp", inputs[0], str(copy)])),
    }
    times = measure.rounds(rounds, {tool: prepared(run) for tool, run in contenders.items()})
    shutil.rmtree(out, ignore_errors=True)
    peak = measure.peak_of(share)
    against = {
        "cat of every input": ("share --dry-run", 0.7),
        "cat, cp of one, sync": ("share", 0.8),
        "cat, cp of one": ("share --no-sync", 0.8),
    }
    title = f"the weights of {len(inputs)} programs of {size >> 20} MiB, {PIECES} pieces in common"
    reached = show(title, rows_of(times, against, {"share": peak}))
    return show_cache_growth("share", peak) and reached


def added(a: Time, b: Time) -> Time:
    return Time(a.wall + b.wall, a.cpu + b.cpu)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="256 MiB, one round")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else SIZE
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(arguments.folder).free < 6 * size:
        print(f"{arguments.folder} has less than {6 * size >> 30} GiB free", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        reached = compare(Path(scratch), size, 1 if arguments.quick else 3)
    print("\nall targets reached" if reached else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
