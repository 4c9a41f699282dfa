# SPDX-License-Identifier: BSD-3-Clause
"""Builds the program of examples/run_bundle.cpp with ExecuTorch's C++ runtime, runs it, and reads its output."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
EXECUTORCH_TESTS = BUILD / "bin" / "etstream_executorch_tests"
_TIMEOUT_SECONDS = 120
_BUILD_TIMEOUT_SECONDS = 900

_CASE = re.compile(r"(.+), case (\d+):")
_OUTPUT = re.compile(
    r"  output \d+: (?:(\d+) of )?(\d+) elements? (?:agrees?|not as expected); "
    r"largest errors (\S+) absolute(?: at \[[\d, ]*\])?, (\S+) relative(?: at \[[\d, ]*\])?, mean ([^;\s]+)(.*)"
)
# A script that runs a command and prints its peak. The process that starts the command is small, as a process begins
# with the peak of its parent.
_PEAK = """
import os, sys
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""


@dataclass(frozen=True)
class Output:
    """The comparison of an output of a test case."""

    elements: int
    mismatches: int
    absolute: float
    relative: float
    mean: float
    rest: str


@dataclass(frozen=True)
class CaseRun:
    """The run of a test case."""

    method: str
    index: int
    outputs: list[Output]

    @property
    def passed(self) -> bool:
        return not any(output.mismatches for output in self.outputs)


@dataclass(frozen=True)
class Report:
    """The end of a run, and its output."""

    code: int
    cases: list[CaseRun]
    stdout: str
    stderr: str
    peak: int
    """The most memory that was resident, in bytes."""


@dataclass(frozen=True)
class RunBundle:
    """The program, which runs bundles."""

    binary: Path

    def run(self, *arguments: str | Path, data_limit: int | None = None) -> Report:
        """Runs the program, whichever way that ends, with at most `data_limit` bytes of memory of its own."""
        limit = [] if data_limit is None else ["/usr/bin/prlimit", f"--data={data_limit}"]
        command = [*limit, str(self.binary), *map(str, arguments)]
        result = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PEAK, *command],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
        )
        return _report(result)


def build(python: str = sys.executable) -> RunBundle:
    """Builds the program, and the tests of the code that it stands on."""
    script = Path(__file__).with_name("build_cpp")
    with (BUILD / "run_bundle.lock").open("w") as lock:
        # Two processes of tests must not build at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = subprocess.run(
            [str(script), python],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_BUILD_TIMEOUT_SECONDS,
        )
    assert built.returncode == 0, built.stdout[-5000:]
    return RunBundle(BUILD / "bin" / "run_bundle")


def _report(result: subprocess.CompletedProcess[str]) -> Report:
    cases: list[CaseRun] = []
    for line in result.stdout.splitlines():
        if case := _CASE.fullmatch(line):
            cases.append(CaseRun(case[1], int(case[2]), []))
        elif output := _OUTPUT.fullmatch(line):
            numbers = [float(output[group]) for group in (3, 4, 5)]
            compared = Output(int(output[2]), int(output[1] or 0), *numbers, output[6])
            cases[-1].outputs.append(compared)
    *stderr, peak = result.stderr.splitlines()
    return Report(
        result.returncode,
        cases,
        result.stdout,
        "\n".join(stderr),
        int(peak),
    )
