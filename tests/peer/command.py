"""The `etstream` command, run as a user runs it, and how its output is compared."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Etstream:
    """Runs the command; a run that fails is an AssertionError with its messages."""

    binary: Path

    def bundle(self, program: Path, cases: Path, output: Path, *options: str) -> bytes:
        """Write a bundle to `output`; returns its bytes."""
        self._run("bundle", program, "--cases", cases, "-o", output, *options)
        return output.read_bytes()

    def bundle_to_pipe(self, program: Path, cases: Path) -> bytes:
        """What the command writes to a pipe on standard output."""
        return self._run("bundle", program, "--cases", cases, "-o", "-")

    def _run(self, *arguments: str | Path) -> bytes:
        command = [str(self.binary), *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_SECONDS)
        if result.returncode != 0:
            errors = result.stderr.decode(errors="replace")
            raise AssertionError(f"{command} ended with {result.returncode}: {errors}")
        return result.stdout


def assert_same_bytes(ours: bytes, executorchs: bytes, what: str) -> None:
    """Fail, and say where, unless both files are the same."""
    if ours == executorchs:
        return
    shorter = min(len(ours), len(executorchs))
    at = next((i for i in range(shorter) if ours[i] != executorchs[i]), shorter)
    window = slice(max(at - 8, 0), at + 24)
    raise AssertionError(
        f"{what}: files differ from byte {at} on\n"
        f"  etstream,   {len(ours)} bytes: {ours[window].hex(' ')}\n"
        f"  ExecuTorch, {len(executorchs)} bytes: {executorchs[window].hex(' ')}"
    )
