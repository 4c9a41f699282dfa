# SPDX-License-Identifier: BSD-3-Clause
"""The types that the package tells: a program that uses all of it passes mypy, and a wrong one does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RIGHT = """
import io
from pathlib import Path
from typing import Any
import etstream

plan: etstream.FilePlan = etstream.bundle(Path("a.pte"), "cases.json", "a.bpte", format="segmented")
size: int = plan.size + len(plan) + plan.metadata_size
plan.write(io.BytesIO(), sync=False, progress=lambda done, total: print(done, total))
source: etstream.Source = etstream.Source.concatenation([b"a", etstream.Source.file("b", offset=3)])[1:]
content: bytes = source.read(0, 1) + bytes(source)
findings: etstream.Findings = etstream.verify("a.pte", "a.ptd")
errors: list[str] = findings.errors
rewritten: etstream.ProgramPlan = etstream.rewrite_program("a.pte", 3, constants_to="a.ptd", delegates="inline")
weights: etstream.FilePlan | None = rewritten.tensor_data
report: dict[str, Any] = etstream.inspect(b"", duplicates=True)
dot: str = etstream.graph("a.pte", "forward", format="dot")
graph: dict[str, Any] = etstream.graph("a.pte")
difference: dict[str, Any] = etstream.diff("a", "b")
tensors: list[etstream.CheckpointTensor] = etstream.Checkpoint(Path("w.safetensors")).tensors
dtype: str | None = tensors[0].dtype
etstream.write_tensor_data({"w": etstream.Tensor("float32", [1], b"")}, "w.ptd", dtype={"*": "bfloat16"})
case = etstream.TestCase([1, 2.5, None, object()], expected_outputs=())
suites: list[etstream.TestSuite] = [etstream.TestSuite("forward", [case])]
values: list[etstream.Tensor | int | float | bool | None] = suites[0].test_cases[0].inputs
bundled = etstream.BundledProgramFile("a.bpte")
bundled.write_test_cases("folder", sync=False)
segments: list[etstream.Segment] = etstream.ProgramFile(bundled.program).segments
keys: list[str] = etstream.ProgramFile("a.pte").external_keys
made: bytes = etstream.FlatbufferText("a.fbs", ["include"]).compile(b"{}")
etstream.ExactJson("a.fbs").decompile("a", "a.json", leave_out_over=16)
try:
    etstream.extract("a", "b", segment=0)
except etstream.CorruptError as error:
    print(error.args)
"""

WRONG = """
import etstream

etstream.bundle("a", "b", "c", format="bp09")
etstream.FilePlan.copy(b"").write("a", True)
etstream.Source("a").read("b")
number: str = etstream.Source("a").size
etstream.graph("a", format="svg")
etstream.TestSuite("forward", [1])
"""


def checked(folder: Path, code: str) -> tuple[int, str]:
    (folder / "user.py").write_text(code)
    mypy = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder}", "user.py"]
    done = subprocess.run(mypy, capture_output=True, text=True, timeout=120, cwd=folder)
    return done.returncode, done.stdout


def test_types(tmp_path: Path) -> None:
    assert checked(tmp_path, RIGHT) == (0, "Success: no issues found in 1 source file\n")
    code, said = checked(tmp_path, WRONG)
    lines = {line.split(":")[1] for line in said.splitlines() if ": error:" in line}
    assert code == 1 and lines == {"4", "5", "6", "7", "8", "9"}, said
