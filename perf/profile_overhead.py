# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of `etstream profile`: the processor time of a program with and without it, one after the other,
and of the watching process, for each second that it watches.

    ETSTREAM=PATH python profile_overhead.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ETSTREAM = os.environ["ETSTREAM"]
PROGRAMS = {
    "computes": "x = 0\nfor i in range(120_000_000): x += i * i % 7",
    "allocates": "for _ in range(400): taken, texts = [bytearray(1 << 20) for _ in range(64)], [str(i) for i in range(60_000)]",
}
WAYS: dict[str, Sequence[str]] = {"profile": [], "profile --callers": ["--callers"]}


def cpu_seconds(command: Sequence[str]) -> float:
    """Returns the processor time of a process and of all processes that it waited for."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, use = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return use.ru_utime + use.ru_stime


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{'':<12} {'':<18} {'program, s':>10} {'change':>7} {'watcher':>8}")
    for name, script in PROGRAMS.items():
        command = [sys.executable, "-c", script]
        plain: list[float] = []
        profiled: dict[str, list[float]] = {way: [] for way in WAYS}
        watcher: dict[str, list[float]] = {way: [] for way in WAYS}
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "profile.json")
            for _ in range(rounds):
                plain.append(cpu_seconds(command))
                for way, options in WAYS.items():
                    both = cpu_seconds([ETSTREAM, "profile", *options, "--json", str(report), "--", *command])
                    found = json.loads(report.read_text())
                    profiled[way].append(found["cpu_seconds"])
                    watcher[way].append((both - found["cpu_seconds"]) / found["seconds"])
        alone = statistics.median(plain)
        print(f"{name:<12} {'alone':<18} {alone:>10.3f}")
        for way in WAYS:
            own = statistics.median(profiled[way])
            print(f"{name:<12} {way:<18} {own:>10.3f} {own / alone - 1:>+7.1%} {statistics.median(watcher[way]):>8.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
