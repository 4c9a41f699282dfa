# SPDX-License-Identifier: BSD-3-Clause
"""Reads the report of `etstream profile` on a command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ETSTREAM = os.environ["ETSTREAM"]
MIB = 1 << 20


@dataclass(frozen=True)
class Profiled:
    """A profile: `report` is the content of --json; `log` is what the command printed to both streams."""

    report: dict[str, Any]
    log: str

    @property
    def is_failed(self) -> bool:
        return bool(self.report["exit_code"] or self.report.get("signal"))

    @property
    def anonymous(self) -> int:
        """The most anonymous memory of all processes together, in bytes, sampled every 10 ms. The peak in the report
        would count pages of files that come and go in between, as those of the heap do."""
        return max(self.report["samples"]["anonymous"], default=0)

    @property
    def phase_of_peak(self) -> str:
        """The deepest of the phases with the most anonymous memory, if there are any."""
        phases = sorted(self.report["phases"], key=lambda phase: (phase["peak"]["anonymous"], phase["depth"]))
        return str(phases[-1]["name"]) if phases else ""


def profiled(command: Sequence[str], folder: Path, *options: str, most: int | None = None) -> Profiled:
    """Runs `command` in `folder`, with `options` of `etstream profile`. With `most`, no process gets more bytes of
    memory of its own (RLIMIT_DATA). Scripts that wait for a line on standard input get one, and begin."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    limited = ["prlimit", f"--data={most}", *command] if most else command
    report = folder / "profile.json"
    done = subprocess.run(
        [ETSTREAM, "profile", *options, "--json", str(report), "--", *limited],
        cwd=folder, env=environment, input=b"\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return Profiled(json.loads(report.read_text()), done.stdout.decode(errors="replace"))
