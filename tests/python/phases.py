# SPDX-License-Identifier: BSD-3-Clause
"""Measures each phase of a process by `etstream profile`.

The process calls `enter` as it gets to a phase:

    phases.enter("export")

and who started it gets the phases:

    for phase in phases.profiled([sys.executable, "worker.py"]):
        print(phase.name, phase.seconds, phase.anonymous)
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import etstream.profile

_current = contextlib.ExitStack()


class Failed(Exception):
    """An error of a process that was profiled."""


@dataclass(frozen=True)
class Phase:
    """A phase, with its anonymous memory in bytes at its beginning, and the most of that and of resident memory."""

    name: str
    before: int
    anonymous: int
    resident: int
    seconds: float

    @property
    def growth(self) -> int:
        """Returns the growth of anonymous memory."""
        return self.anonymous - self.before


def enter(name: str) -> None:
    """Ends the phase that this process is in, and begins another. Does nothing if nobody profiles it."""
    _current.close()
    _current.enter_context(etstream.profile.phase(name))


def profiled(command: Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Phase]:
    """Runs `command`, and returns its phases; its output is thrown away."""
    etstream_command = environment.get("ETSTREAM") or os.path.join(sysconfig.get_path("scripts"), "etstream")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "profile.json")
        run = [etstream_command, "profile", "--json", str(report), "--", *command]
        done = subprocess.run(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stderr.decode(errors='replace')}")
        found = json.loads(report.read_text(encoding="utf-8"))
    return [
        Phase(
            phase["name"],
            phase["anonymous_before"],
            phase["peak"]["anonymous"],
            phase["peak"]["resident"],
            phase["seconds"],
        )
        for phase in found["phases"]
    ]
