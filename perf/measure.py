# SPDX-License-Identifier: BSD-3-Clause
"""Measures a command from outside: its time, memory and page cache."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True)
class Time:
    """A time in seconds."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Peak:
    """The peaks above the earlier values, in bytes, of the process's anonymous memory and of the machine's page
    cache."""

    anonymous: int
    page_cache: int


class Failed(Exception):
    """An error of a command that is measured."""


def timed(command: Sequence[str], sync: Path | None = None) -> Time:
    """Times `command`; with `sync`, until that file is on the disk."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with process:
        assert process.stderr is not None
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if sync:
        flush(sync)
    wall = time.perf_counter() - start
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: {message.decode()}")
    return Time(wall, usage.ru_utime + usage.ru_stime)


def flush(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def peak_of(command: Sequence[str]) -> Peak:
    """Runs `command`, and samples its memory as often as the machine allows."""
    before = page_cache()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = watched(process, before)
    if process.returncode != 0:
        raise Failed(" ".join(command))
    return peak


def watched(process: subprocess.Popen, cache_before: int, memory_before: int = 0) -> Peak:
    memory = cache = 0
    while process.poll() is None:
        memory = max(memory, anonymous_memory(process.pid))
        cache = max(cache, page_cache() - cache_before)
        time.sleep(0.0002)
    return Peak(max(memory - memory_before, 0), cache)


def anonymous_memory(pid: int) -> int:
    """Returns the anonymous memory of a process in bytes; 0 once the process has ended."""
    try:
        return _kib_line(Path(f"/proc/{pid}/status"), "RssAnon:")
    except (FileNotFoundError, ProcessLookupError):
        return 0


def page_cache() -> int:
    return _kib_line(Path("/proc/meminfo"), "Cached:")


def _kib_line(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


def rounds(count: int, contenders: dict[str, Callable[[], Time]]) -> dict[str, list[Time]]:
    """Returns the times of each contender, round by round, so that disturbances of the machine affect all of them."""
    times: dict[str, list[Time]] = {name: [] for name in contenders}
    for _ in range(count):
        for name, run in contenders.items():
            times[name].append(run())
    return times


def median(times: Sequence[Time]) -> Time:
    return Time(
        statistics.median(each.wall for each in times), statistics.median(each.cpu for each in times)
    )


def ratios(times: Sequence[Time], to: Sequence[Time]) -> tuple[float, float, float]:
    """Returns the lowest, median and highest ratio of the two in one round."""
    each = sorted(a.wall / b.wall for a, b in zip(times, to, strict=True))
    return each[0], statistics.median(each), each[-1]
