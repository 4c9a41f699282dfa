# SPDX-License-Identifier: BSD-3-Clause
"""Runs the `etstream` command as a user runs it, and compares its output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    """The end of a run of the command, and its output."""

    code: int
    stdout: bytes
    stderr: str

    def errors(self) -> list[str]:
        """Returns the messages of the lines "error: ..."."""
        lines = self.stderr.splitlines()
        return [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]


@dataclass(frozen=True)
class Findings:
    """The findings that `verify` reports on a file."""

    errors: list[str]
    warnings: list[str]


@dataclass(frozen=True)
class Etstream:
    """The command. A run that fails raises an AssertionError with its messages."""

    binary: Path

    def bundle(self, program: Path, cases: Path, output: Path, *options: str) -> bytes:
        """Writes a bundle to `output`, and returns its bytes."""
        self._run("bundle", program, "--cases", cases, "-o", output, *options)
        return output.read_bytes()

    def bundle_to_pipe(self, program: Path, cases: Path) -> bytes:
        """Returns the bytes that the command writes to a pipe on standard output."""
        return self._run("bundle", program, "--cases", cases, "-o", "-")

    def convert(self, bundle: Path, output: Path, to: str) -> bytes:
        """Writes the bundle in another format to `output`, and returns its bytes."""
        self._run("convert", bundle, "--to", to, "-o", output, "--no-sync")
        return output.read_bytes()

    def pte(self, program: Path, output: Path, *options: str) -> bytes:
        """Writes the program under another layout to `output`, and returns its bytes."""
        self._run("pte", program, "-o", output, "--no-sync", *options)
        return output.read_bytes()

    def ptd(self, inputs: Sequence[Path], output: Path, *options: str | Path) -> bytes:
        """Writes tensor data, or the format that --to names, from checkpoints, and returns its bytes."""
        self._run("ptd", *inputs, "-o", output, "--no-sync", *options)
        return output.read_bytes()

    def extract(self, file: Path, piece: str) -> bytes:
        """Returns the bytes of a piece, by its path in `inspect`."""
        return self._run("extract", file, piece, "-o", "-")

    def extract_program(self, bundle: Path, output: Path) -> bytes:
        """Writes the bundle's program to `output`, and returns its bytes."""
        self._run("extract", bundle, "program", "-o", output, "--no-sync")
        return output.read_bytes()

    def extract_cases(self, bundle: Path, folder: Path) -> Path:
        """Writes the bundle's test cases to `folder`, and returns its CASES.json."""
        self._run("extract", bundle, "--cases", folder, "--no-sync")
        return folder / "cases.json"

    def flatc(self, command: str, *arguments: str | Path) -> None:
        """Makes `compile` or `decompile` do what flatc does with these arguments."""
        self._run(command, "--no-sync", *arguments)

    def inspect(self, file: Path) -> Any:
        """Returns the JSON of `inspect`."""
        return json.loads(self._run("inspect", file, "--json"))

    def graph(self, file: Path, method: str) -> Any:
        """Returns a method as a graph."""
        return json.loads(self._run("inspect", file, "--graph", method, "--json"))

    def dot(self, file: Path, method: str) -> str:
        """Returns a method's graph for Graphviz."""
        return self._run("inspect", file, "--graph", method).decode()

    def diff(self, a: Path, b: Path) -> tuple[int, Any]:
        """Returns the exit code, and the JSON of the differences."""
        outcome = self.attempt("diff", a, b, "--json")
        assert outcome.code in (0, 1), outcome
        return outcome.code, json.loads(outcome.stdout)

    def verify(self, file: Path, *weights: Path) -> Findings:
        """Returns the findings of `verify` in the file and in the weights; checks that its exit code agrees."""
        outcome = self.attempt("verify", file, *weights, "--json")
        report = json.loads(outcome.stdout)
        assert report["file"] == str(file)
        assert report["ok"] == (report["errors"] == []) == (outcome.code == 0), outcome
        assert outcome.code in (0, 1), outcome
        return Findings(report["errors"], report["warnings"])

    def accepts(self, file: Path) -> bool:
        """Returns whether `verify` accepts the file; checks that it says why if not."""
        outcome = self.attempt("verify", file)
        assert outcome.code in (0, 1), (file, outcome)
        assert outcome.code == 0 or outcome.stderr, file
        return outcome.code == 0

    def attempt(self, *arguments: str | Path) -> Outcome:
        """Runs the command, and returns its outcome, whatever that is."""
        command = [str(self.binary), *map(str, arguments)]
        result = subprocess.run(command, check=False, capture_output=True, timeout=_TIMEOUT_SECONDS)
        return Outcome(result.returncode, result.stdout, result.stderr.decode(errors="replace"))

    def _run(self, *arguments: str | Path) -> bytes:
        outcome = self.attempt(*arguments)
        if outcome.code != 0:
            command = [str(self.binary), *map(str, arguments)]
            raise AssertionError(f"{command} ended with {outcome.code}: {outcome.stderr}")
        return outcome.stdout


def assert_same_bytes(ours: bytes, executorchs: bytes, what: str) -> None:
    """Fails, and says where, unless both files are the same."""
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
