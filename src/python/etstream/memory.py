# SPDX-License-Identifier: BSD-3-Clause
"""How much memory each phase of a program takes.

    memory = Phases()
    with memory.phase("imports"):
        import torch
    with memory.phase("export"):
        ...
    print(memory)
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

_LOOK_EVERY_SECONDS = 0.002


@dataclass(frozen=True)
class Peak:
    """What was in memory at most, in bytes: of the whole process, not only what the phase added.

    `anonymous` is what no file backs, looked at every 2 ms; `resident` has the pages of mapped files too.
    """

    anonymous: int
    resident: int

    def above(self, other: Peak) -> Peak:
        return Peak(self.anonymous - other.anonymous, self.resident - other.resident)


@dataclass(frozen=True)
class Phase:
    name: str
    seconds: float
    peak: Peak


class Phases:
    """The phases of this process, which follow one another. For Linux."""

    def __init__(self) -> None:
        self.finished: list[Phase] = []

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures what runs within, also if it raises."""
        watch = _Watch()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.finished.append(Phase(name, time.perf_counter() - start, watch.end()))

    def __getitem__(self, name: str) -> Phase:
        return next(phase for phase in self.finished if phase.name == name)

    def __str__(self) -> str:
        """A table, in MiB; the last two columns are what is over the first phase's."""
        rows = [f"{'phase':<16} {'seconds':>8} {'anonymous':>10} {'resident':>9} {'above':>6} {'above':>6}"]
        for phase in self.finished:
            above = phase.peak.above(self.finished[0].peak)
            sizes = (phase.peak.anonymous, phase.peak.resident, above.anonymous, above.resident)
            rows.append(
                "{:<16} {:>8.1f} {:>10} {:>9} {:>6} {:>6}".format(
                    phase.name, phase.seconds, *(size >> 20 for size in sizes)
                )
            )
        return "\n".join(rows)


class _Watch:
    """A thread that looks at the process's memory from now on until it is told to end."""

    def __init__(self) -> None:
        self._peak = _now()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="etstream.memory", daemon=True)
        self._thread.start()

    def end(self) -> Peak:
        self._ended.set()
        self._thread.join()
        self._look()
        return self._peak

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        now = _now()
        self._peak = Peak(
            max(self._peak.anonymous, now.anonymous), max(self._peak.resident, now.resident)
        )


def _now() -> Peak:
    sizes = {}
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            name, _, value = line.partition(":")
            if name in ("RssAnon", "VmRSS"):
                sizes[name] = int(value.split()[0]) << 10
    return Peak(sizes["RssAnon"], sizes["VmRSS"])
