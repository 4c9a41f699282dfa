# SPDX-License-Identifier: BSD-3-Clause
"""The releases that tests/field/install-releases installs, and files written by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_WORKER = Path(__file__).with_name("write_as.py")

Task = dict[str, Any]


@dataclass(frozen=True)
class Writer:
    """A release of ExecuTorch with one of Python's flatbuffers."""

    release: str
    flatbuffers: str

    def environment(self, root: Path) -> dict[str, str]:
        """Of a process that imports these."""
        folders = [root / "peer-releases" / self.release, root / "peer-flatbuffers" / self.flatbuffers]
        for folder in folders:
            if not (folder / ".complete").exists():
                raise FileNotFoundError(f"{folder}: run tests/field/install-releases")
        return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}

    def write(self, tasks: Sequence[Task], root: Path = _ROOT / "build") -> dict[str, str | None]:
        """Have the release write files (see write_as.py); what it says of each that it does not write."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tasks.json"
            file.write_text(json.dumps(list(tasks)))
            result = subprocess.run(
                [sys.executable, str(_WORKER), str(file)],
                env=self.environment(root),
                capture_output=True,
                text=True,
            )
        if result.returncode != 0:
            raise RuntimeError(f"{self}: {result.stderr}")
        lines = map(json.loads, result.stdout.splitlines())
        return {line["output"]: line["error"] for line in lines}
