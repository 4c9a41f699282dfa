# SPDX-License-Identifier: BSD-3-Clause
"""Measures how time and memory of `etstream bundle` grow with the number of test cases, and of test suites.

    ETSTREAM=PATH python growth.py SCRATCH_FOLDER

Prints tables and draws growth.png in the folder. A test case has one input and one output, tensors of 64 bytes each;
the plan tells the size of its metadata.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import measure
from matplotlib import pyplot
from measure import MIB

ETSTREAM = os.environ["ETSTREAM"]
PROGRAM = Path(__file__).resolve().parents[1] / "examples" / "model.pte"
CASES = (1, 10, 100, 1_000, 10_000, 100_000)
SUITES = (1, 10, 100, 1_000)
ROUNDS = 5
MOST_FOR_LINEAR = 2.0
"""A step of ten times the work may take this many times ten times the time."""


@dataclass(frozen=True)
class Point:
    count: int
    seconds: float
    memory: int
    metadata: int


def suite(cases: int) -> list[dict]:
    tensor = {"raw": "tensor.bin", "dtype": "float32", "shape": [1, 16]}
    return [{"inputs": [tensor], "expected_outputs": [tensor]}] * cases


def points(counts: tuple[int, ...], folder: Path, *, as_suites: bool) -> Iterator[Point]:
    (folder / "tensor.bin").write_bytes(bytes(range(64)))
    for count in counts:
        methods = {f"m{i:04}": suite(1) for i in range(count)} if as_suites else {"m": suite(count)}
        (folder / "cases.json").write_text(json.dumps(methods))
        # The program has no methods of these names, which does not matter here.
        command = [ETSTREAM, "bundle", str(PROGRAM), "--cases", str(folder / "cases.json")]
        command += ["-o", str(folder / "out.bpte"), "--no-sync", "--unchecked"]
        runs = measure.rounds(ROUNDS, {"": lambda: measure.timed(command)})[""]  # noqa: B023
        peak = max(measure.peak_of(command).anonymous for _ in range(3))
        plan = subprocess.run([*command, "--dry-run", "--json"], capture_output=True, check=True)
        yield Point(count, measure.median(runs).wall, peak, json.loads(plan.stdout)["metadata_size"])


def print_table(what: str, series: list[Point]) -> bool:
    """Prints a table, and returns whether the time is linear."""
    print(f"\n{what:>11} {'ms':>9} {'us each':>9} {'memory MiB':>11} {'metadata MiB':>13} {'ratio':>6}")
    base = series[0]
    linear = True
    for before, point in zip([base, *series], series):
        own = point.memory - base.memory
        ratio = f"{own / point.metadata:.1f}" if point.count >= 1000 else ""
        print(
            f"{point.count:>11} {point.seconds * 1000:>9.1f} {point.seconds / point.count * 1e6:>9.1f} "
            f"{point.memory / MIB:>11.1f} {point.metadata / MIB:>13.2f} {ratio:>6}"
        )
        steps = point.count / before.count
        linear = linear and point.seconds <= MOST_FOR_LINEAR * steps * before.seconds
    return linear


def draw(cases: list[Point], suites: list[Point], file: Path) -> None:
    figure, (time, memory) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for label, series in (("test cases", cases), ("test suites of one case", suites)):
        counts = [p.count for p in series]
        time.loglog(counts, [p.seconds for p in series], marker="o", label=label)
        memory.loglog(counts, [p.memory / MIB for p in series], marker="o", label=label)
    memory.loglog(
        [p.count for p in cases],
        [p.metadata / MIB for p in cases],
        linestyle="--",
        label="metadata in the file (test cases)",
    )
    time.set(title="etstream bundle: time", xlabel="count", ylabel="seconds")
    memory.set(title="etstream bundle: memory", xlabel="count", ylabel="MiB")
    for axes in (time, memory):
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        cases = list(points(CASES, Path(scratch), as_suites=False))
        suites = list(points(SUITES, Path(scratch), as_suites=True))
    linear = [print_table("test cases", cases), print_table("test suites", suites)]
    draw(cases, suites, folder / "growth.png")
    print(f"\ntime is {'linear' if all(linear) else 'NOT linear'}; the curves: {folder / 'growth.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
