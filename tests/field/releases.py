# SPDX-License-Identifier: BSD-3-Clause
"""Lists the releases of tests/field/releases.txt, and runs processes that import one of each."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"


def _versions(package: str) -> tuple[str, ...]:
    lines = (HERE / "releases.txt").read_text().splitlines()
    return tuple(line.split()[1] for line in lines if line.startswith(f"{package} "))


EXECUTORCH, FLATBUFFERS = _versions("executorch"), _versions("flatbuffers")


@dataclass(frozen=True)
class Writer:
    """A release of ExecuTorch with one of Python's flatbuffers."""

    release: str
    flatbuffers: str

    def __str__(self) -> str:
        return f"{self.release}-{self.flatbuffers}"

    @property
    def as_of(self) -> str:
        """The name of the release for `--as-of`."""
        return ".".join(self.release.split(".")[:2])

    def options(self) -> list[str]:
        """The options that make the command write the same as this writer."""
        return ["--as-of", self.as_of, "--flatbuffers", self.flatbuffers]

    def run(self, script: str, *arguments: str | Path) -> str:
        """Runs a script of this folder with this release imported, and returns what it printed."""
        folders = [BUILD / "peer-releases" / self.release, BUILD / "peer-flatbuffers" / self.flatbuffers]
        for folder in folders:
            if not (folder / ".complete").exists():
                raise FileNotFoundError(f"{folder}: run tests/field/install-releases")
        # After the releases come the scripts that are shared with the tests against the current one.
        path = [*folders, HERE.parent / "peer", HERE.parent / "golden"]
        command = [sys.executable, str(HERE / script), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
        result = subprocess.run(command, env=environment, capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{script} with {self}: {result.stderr}")
        return result.stdout


def _flatbuffers_of(release: str) -> tuple[str, ...]:
    """Returns the versions of Python's flatbuffers to try with a release. Releases up to 1.1 do not use it, so one is
    enough; of a release's patches, only one is tried with all."""
    if release.startswith(("1.0.", "1.1.")):
        return FLATBUFFERS[-1:]
    return FLATBUFFERS[-2:-1] if release == "1.5.0" else FLATBUFFERS


WRITERS = tuple(Writer(release, flatbuffers) for release in EXECUTORCH for flatbuffers in _flatbuffers_of(release))
CURRENT = Writer(EXECUTORCH[-1], FLATBUFFERS[-1])
