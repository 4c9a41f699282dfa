# SPDX-License-Identifier: BSD-3-Clause
"""Measures `etstream bundle` against ExecuTorch's writers and cp, on real programs, for the table in
docs/performance.md.

    ETSTREAM=PATH python bundle.py [--quick] SCRATCH_FOLDER
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import inputs
import measure
from measure import MIB, Peak, Time
from table import Row, show, show_cache_growth, show_limit

ETSTREAM = os.environ["ETSTREAM"]
COPY = "cp"
COPY_AND_SYNC = "cp, sync"
BUNDLE = "etstream --no-sync"
BUNDLE_AND_SYNC = "etstream"
DIRECT = "ExecuTorch"
JSON = "ExecuTorch, JSON"

ROUNDS = {"MobileNetV2": 9, "ResNet-50": 7, "embedding of 512 MiB": 5, "embedding of 1.9 GiB": 3}
LARGEST_START = 0.005


@dataclass(frozen=True)
class Target:
    """A target: `tool` takes at least `at_least` times the time that `etstream` takes with the same durability."""

    tool: str
    at_least: float


def targets(name: str) -> list[Target]:
    """Returns etstream's targets: the least number of times its own time that each of the others is to take."""
    out = [Target(DIRECT, 3 if name == "MobileNetV2" else 10), Target(COPY_AND_SYNC, 1)]
    return out + [Target(JSON, 500)] if name == "MobileNetV2" else out


class Contest:
    """A contest of all ways to make one bundle."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._input = inputs.exported(name, folder / "inputs")
        self._output = folder / "out.bpte"
        self._finished = folder / "finished.bpte"
        self._run(self._bundle(sync=False))
        self._output.rename(self._finished)

    def size(self) -> int:
        return self._finished.stat().st_size

    def contenders(self) -> dict[str, Callable[[], Time]]:
        return {
            BUNDLE: lambda: self._timed(self._bundle(sync=False)),
            DIRECT: lambda: self._executorch("direct")[0],
            COPY: lambda: self._timed(self._copy()),
            BUNDLE_AND_SYNC: lambda: self._timed(self._bundle(sync=True)),
            COPY_AND_SYNC: lambda: self._timed(self._copy(), sync=self._output),
        }

    def json(self) -> Time:
        return self._executorch("json")[0]

    def peaks(self) -> dict[str, Peak]:
        """Returns the peaks of three runs each, with the least page cache, as other processes change that too."""
        runs = {
            BUNDLE: lambda: self._peak(self._bundle(sync=False)),
            DIRECT: lambda: self._executorch("direct")[1],
            COPY: lambda: self._peak(self._copy()),
            BUNDLE_AND_SYNC: lambda: self._peak(self._bundle(sync=True)),
        }
        out = {}
        for tool, run in runs.items():
            seen = [run() for _ in range(3)]
            out[tool] = Peak(max(p.anonymous for p in seen), min(p.page_cache for p in seen))
        return out

    def close(self) -> None:
        self._output.unlink(missing_ok=True)
        self._finished.unlink(missing_ok=True)

    def _bundle(self, *, sync: bool) -> list[str]:
        command = [ETSTREAM, "bundle", str(self._input.program)]
        command += ["--cases", str(self._input.cases), "-o", str(self._output)]
        return command if sync else [*command, "--no-sync"]

    def _copy(self) -> list[str]:
        """Returns the command that copies the bundle that the others make."""
        return ["cp", str(self._finished), str(self._output)]

    def _prepare(self) -> None:
        """Puts inputs into the page cache, removes the output, and writes back the data of earlier runs."""
        self._output.unlink(missing_ok=True)
        os.sync()
        for file in (self._input.program, self._finished):
            subprocess.run(["cat", str(file)], stdout=subprocess.DEVNULL, check=True)

    def _run(self, command: Sequence[str]) -> None:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

    def _timed(self, command: Sequence[str], sync: Path | None = None) -> Time:
        self._prepare()
        return measure.timed(command, sync)

    def _peak(self, command: Sequence[str]) -> Peak:
        self._prepare()
        return measure.peak_of(command)

    def _executorch(self, way: str) -> tuple[Time, Peak]:
        self._prepare()
        script = str(Path(__file__).with_name("executorch_writer.py"))
        files = [self._input.program, self._input.executorch_cases, self._output]
        process = subprocess.Popen(
            [sys.executable, script, way, *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise measure.Failed(script)
        memory, cache = measure.anonymous_memory(process.pid), measure.page_cache()
        process.stdin.write("go\n")
        process.stdin.flush()
        peak = measure.watched(process, cache, memory)
        if process.returncode != 0:
            raise measure.Failed(script)
        wall, cpu = map(float, process.stdout.readline().split())
        return Time(wall, cpu), peak


def print_table(contest: Contest, times: dict[str, list[Time]], peaks: dict[str, Peak]) -> bool:
    """Prints a table, and returns whether every target was reached."""
    wanted = {target.tool: target.at_least for target in targets(contest.name)}
    rows = []
    for tool, runs in times.items():
        own = BUNDLE_AND_SYNC if tool in (BUNDLE_AND_SYNC, COPY_AND_SYNC) else BUNDLE
        against = None if tool == own else times[own]
        rows.append(Row(tool, runs, against, wanted.get(tool), peaks.get(tool)))
    reached = show(f"{contest.name}: a bundle of {contest.size() / MIB:.0f} MiB", rows)
    return show_cache_growth("etstream", peaks[BUNDLE_AND_SYNC]) and reached


def print_start() -> bool:
    """Prints the time of the smallest bundle, mostly start-up; returns whether it reaches the target."""
    example = Path(__file__).resolve().parents[1] / "examples"
    command = [ETSTREAM, "bundle", str(example / "model.pte"), "--cases", str(example / "cases.json")]
    runs = [measure.timed([*command, "--dry-run"]) for _ in range(50)]
    seconds = measure.median(runs).wall
    return show_limit("start-up (examples/model.pte, --dry-run)", seconds * 1000, LARGEST_START * 1000, "ms")


def machine() -> str:
    cpu = next(
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{os.cpu_count()} cores of {cpu}, {memory:.0f} GiB, Linux {os.uname().release}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="the two smallest, three rounds")
    arguments = parser.parse_args()
    names = list(ROUNDS)[:2] if arguments.quick else list(ROUNDS)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    needed = (2 if arguments.quick else 12) << 30
    if shutil.disk_usage(arguments.folder).free < needed:
        print(f"{arguments.folder} has less than {needed >> 30} GiB free", file=sys.stderr)
        return 1
    print(machine())
    reached = print_start()
    for name in names:
        contest = Contest(name, arguments.folder)
        try:
            times = measure.rounds(3 if arguments.quick else ROUNDS[name], contest.contenders())
            if name == "MobileNetV2":
                times[JSON] = [contest.json()]
            reached = print_table(contest, times, contest.peaks()) and reached
        finally:
            contest.close()
    print("\nall targets reached" if reached else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
