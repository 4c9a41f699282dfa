# SPDX-License-Identifier: BSD-3-Clause
"""Runs methods by verify(run=True) on this Python's ExecuTorch; tests/peer/test_verify_run.py has the ways in which
they may end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import etstream
import pytest
import torch
from executorch.exir import to_edge

INTERRUPTED = """
import signal, sys, etstream
# Python does not set this handler if it was started in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("begins", flush=True)
etstream.verify(sys.argv[1], run=True, python=sys.argv[2])
"""


@pytest.fixture(scope="module")
def program() -> bytes:
    torch.manual_seed(0)
    exported = torch.export.export(torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),))
    return bytes(to_edge(exported).to_executorch().buffer)


def test_runs_of_a_path_and_of_bytes_are_among_the_findings(program: bytes, tmp_path: Path) -> None:
    path = tmp_path / "linear.pte"
    path.write_bytes(program)
    for source in (path, program):
        findings = etstream.verify(source, run=True, seed=3)
        assert findings, findings
        assert [run.inputs for run in findings.runs] == ["zeros", "ones", "random (seed 3)"]
        assert all(findings.runs)
        assert str(findings.runs[0]) == "forward, zeros: ok"
    assert etstream.verify(path).runs == ()


def test_what_did_not_end_well_is_an_error(program: bytes) -> None:
    findings = etstream.verify(program.replace(b"aten::addmm", b"aten::odd__"), run=True)
    assert not findings
    assert [error.partition(": ")[2] for error in findings.errors] == [str(run) for run in findings.runs]
    run = findings.runs[0]
    assert not run
    assert (run.end, run.error, run.error_name) == ("refused", 0x14, "OperatorMissing")
    with pytest.raises(etstream.CorruptError, match=r"forward, zeros: refused: ExecuTorch says OperatorMissing"):
        findings.raise_if_errors()


def test_outputs_of_test_cases_are_compared(program: bytes, tmp_path: Path) -> None:
    bundle = tmp_path / "linear.bpte"
    cases = {"forward": [etstream.TestCase([torch.ones(1, 3)], [torch.zeros(1, 2)])]}
    etstream.bundle(program, cases, bundle)
    (run,) = etstream.verify(bundle, run=True).runs
    assert (run.inputs, run.end) == ("test case 0", "other_outputs")
    assert run.outputs[0].mismatches == 2
    assert etstream.verify(bundle, run=True, atol=10)
    with pytest.raises(etstream.InvalidArgumentError):
        etstream.verify(bundle, run=True, atol=-1)


def test_a_python_without_executorch_is_refused(program: bytes, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    with pytest.raises(etstream.UnsupportedError, match=r"has no ExecuTorch runtime .*pip install executorch"):
        etstream.verify(program, run=True, python=str(python))


def test_an_interrupt_gets_through(program: bytes, tmp_path: Path) -> None:
    path, python = tmp_path / "linear.pte", tmp_path / "python"
    path.write_bytes(program)
    python.write_text("#!/bin/sh\nsleep 60\n")
    python.chmod(0o755)
    command = [sys.executable, "-c", INTERRUPTED, path, python]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in said
