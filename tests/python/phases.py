# SPDX-License-Identifier: BSD-3-Clause
"""What each phase of a process takes, looked at from outside.

The process calls `enter` as it gets to a phase:

    phases.enter("export")

and who started it gets the phases:

    for phase in phases.watched([sys.executable, "worker.py"]):
        print(phase.name, phase.seconds, phase.anonymous)
"""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PIPES = "ETSTREAM_PHASES"
_INTERVAL = 0.001


class Failed(Exception):
    """A process that was watched ended with an error."""


@dataclass
class Phase:
    """Bytes of anonymous memory as it began, and the most there was of it and of resident memory."""

    name: str
    before: int
    anonymous: int
    resident: int
    seconds: float = 0.0

    @property
    def growth(self) -> int:
        """Of anonymous memory."""
        return self.anonymous - self.before


def enter(name: str) -> None:
    """Ends the phase that this process is in and begins one. Nothing, where nobody looks."""
    if _PIPES in os.environ:
        told, seen = map(int, os.environ[_PIPES].split())
        os.write(told, f"{name}\n".encode())
        os.read(seen, 1)


def watched(command: Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Phase]:
    """Runs `command`, which is in "start" before it enters a phase; what it prints is thrown away."""
    read_told, told = os.pipe()
    read_seen, seen = os.pipe()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**environment, _PIPES: f"{told} {read_seen}"},
            pass_fds=(told, read_seen),
        )
        os.close(told)
        os.close(read_seen)
        try:
            phases = _look(process.pid, read_told, seen)
        finally:
            os.close(read_told)
            os.close(seen)
            status = process.wait()
        if status != 0:
            errors.seek(0)
            raise Failed(f"{' '.join(command)}: {errors.read().decode(errors='replace')}")
    return phases


def _look(pid: int, told: int, seen: int) -> list[Phase]:
    """Until the process has closed `told`. It waits while a phase is begun."""
    begun = time.perf_counter()
    anonymous, resident = _memory(pid)
    phases = [Phase("start", anonymous, anonymous, resident)]
    while True:
        news = os.read(told, 4096) if select.select([told], [], [], _INTERVAL)[0] else None
        anonymous, resident = _memory(pid)
        phase = phases[-1]
        phase.anonymous = max(phase.anonymous, anonymous)
        phase.resident = max(phase.resident, resident)
        if news is None:
            continue
        phase.seconds = time.perf_counter() - begun
        if not news:
            return phases
        phases.append(Phase(news.decode().strip(), anonymous, anonymous, resident))
        begun = time.perf_counter()
        os.write(seen, b".")


def _memory(pid: int) -> tuple[int, int]:
    """Anonymous and resident; nothing once the process has ended."""
    found = {}
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("RssAnon", "VmRSS"):
                found[name] = int(value.split()[0]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found.get("RssAnon", 0), found.get("VmRSS", 0)
