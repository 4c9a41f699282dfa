# SPDX-License-Identifier: BSD-3-Clause
"""Tests the types that the package declares: a program that uses all of it passes mypy, and a wrong one does not."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import etstream
import etstream.executorch
import etstream.results
import pytest

RIGHT = """
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
import etstream
import numpy
from etstream import results

plan: etstream.FilePlan = etstream.bundle(Path("a.pte"), "cases.json", "a.bpte", to="segmented")
size: int = plan.size + len(plan) + plan.metadata_size
plan.write(io.BytesIO(), sync=False, progress=lambda done, total: print(done, total))
source: etstream.Source = etstream.Source.concatenation([b"a", etstream.Source.file("b", offset=3)])[1:]
content: bytes = source.read(0, 1) + bytes(source)
etstream.pack(sys.stdin.buffer, "a.etz", threads=2, progress=True)
etstream.unpack(3, io.BytesIO(), sync=False)
findings: results.Findings = etstream.verify("a.pte", "a.ptd")
errors: tuple[results.Finding, ...] = findings.errors
places: list[int | None] = [error.offset for error in errors]
rewritten: results.ProgramPlan = etstream.pte("a.pte", 3, constants_to="a.ptd", delegates="inline")
weights: etstream.FilePlan | None = rewritten.tensor_data
report: results.Inspection = etstream.inspect(b"", duplicates=True)
rows: list[dict[str, Any]] = [part.to_dict() for part in report.parts]
named: results.Table[results.NamedData] = report.named_data
ends: list[int] = [extent.offset + extent.size for extent in plan.extents]
dot: str = etstream.graph("a.pte", "forward", format="dot")
graph: results.Graph = etstream.graph("a.pte")
same: bool = etstream.diff("a", "b").same_content
tensors: list[etstream.CheckpointTensor] = etstream.Checkpoint(Path("w.safetensors")).tensors
dtype: str | None = tensors[0].dtype
etstream.ptd({"w": etstream.Tensor("float32", [1], b"")}, "w.ptd", dtype={"*": "bfloat16"})
case = etstream.TestCase([1, 2.5, None, object()], expected_outputs=())
suites: list[etstream.TestSuite] = [etstream.TestSuite("forward", [case])]
values: list[etstream.Tensor | int | float | bool | None] = suites[0].test_cases[0].inputs
bundled = etstream.BundledProgramFile("a.bpte")
bundled.write_test_cases("folder", sync=False)
segments: results.Table[results.Segment] = etstream.ProgramFile(bundled.program).segments
keys: list[str] = etstream.ProgramFile("a.pte").external_keys
made: bytes = etstream.FlatbufferText("a.fbs", ["include"]).compile(b"{}")
etstream.ExactJson("a.fbs").decompile("a", "a.json", leave_out_over=16)
try:
    etstream.extract("a", "segments/0", "b")
except etstream.CorruptError as error:
    name: str | None = error.filename
    offset: int | None = error.offset
weights_by_name: Mapping[str, etstream.CheckpointTensor] = etstream.Checkpoint("w.ptd")
payloads: Mapping[str, etstream.Source] = etstream.FatContainerFile("a.fat")
for key, found in etstream.Checkpoint("w.ptd").items():
    print(key.upper(), found.shape)
array = etstream.Checkpoint("w.ptd")["w"].numpy()
shape: tuple[int, ...] = etstream.Tensor("int8", [1], b"1").shape
etstream.save_ptd({"w": etstream.Tensor("int8", [1], b"1"), "x": numpy.ones(1), "y": numpy.float16(1)}, "w.ptd")
etstream.ptd([{"w": array, "x": etstream.Checkpoint("w.ptd")["w"]}, "w.gguf"], "w.ptd")
compared: results.Comparison = etstream.compare(1, 2.0, rtol=0, atol=1)
mismatch: results.Mismatch | None = compared.first
findings.raise_if_errors()
options = etstream.ProgramOptions(segment_alignment="4K", drop_method=["train"])
etstream.pte(program="a.pte", constants_to="w.ptd", **options | {"dry_run": True})
etstream.pte("a.pte", "b.pte", **options | {"as_of": "1.3", "sync": False})
changed: etstream.ProgramOptions = {**options, "delegates": "segments"}
others: list[etstream.FilePlan] = [
    etstream.bundle("a.pte", "cases.json", **etstream.BundleOptions(to="segmented", hash=False, dry_run=True)),
    etstream.ptd({}, **etstream.TensorDataOptions(only="layers.*", dtype="bf16", dry_run=True)),
    etstream.fat({}, **etstream.FatContainerOptions(align=16, dry_run=True)),
    etstream.ptn(b"", **etstream.NativePackageOptions(mutable=["k"], dry_run=True)),
    etstream.ExactJson("a.fbs").compile(b"{}", **etstream.FlatbufferOptions(order="python", dry_run=True)),
]
etstream.share({}, fat="out.fat", **etstream.SharingOptions(least_size=1, dry_run=True))
etstream.compare(1, 2, **etstream.Tolerance(integer=1))
origins: results.WeightOrigins = etstream.explain("a.pte", b"", Path("w.ptd"), by=["a.gguf", {"w": array}])
steps: tuple[str, ...] = origins.payloads[0].tensors[0].steps
reweighted: results.ReweightingPlan = etstream.reweight(
    "a.pte", "w.ptd", was="old", now=etstream.Checkpoint("new"), output=3, weights_to=["v.ptd", io.BytesIO()]
)
etstream.reweight("a.pte", ["v.ptd", Path("w.ptd")], was="old", now="new", output=3, weights_to=io.BytesIO())


def take(source: etstream.SourceLike, output: etstream.OutputLike, cases: etstream.TestCases) -> None:
    etstream.bundle(source, cases, output, metadata={"author": "me"})


class TheirCase:
    inputs = [1, 2]
    expected_outputs = [3]


class TheirSuite:
    method_name = "forward"
    test_cases = [TheirCase()]


take([b"b", io.BytesIO(), open("c", "rb")], sys.stdout.buffer, [TheirSuite(), suites[0]])
parts: list[bytes | etstream.Source] = [b"a", etstream.Source("b")]
take([parts, (b"c", numpy.ones(1))], 1, "cases.json")
take(numpy.ones(1), 1, "cases.json")
take(memoryview(b""), io.BytesIO(), {"forward": [TheirCase()]})
take(etstream.Source("a"), 1, TheirSuite())
"""

WRONG = """
from pathlib import Path
import etstream
class Storage:
    def data_ptr(self) -> int: return 0

etstream.bundle("a", "b", "c", to="bp09")
etstream.FilePlan.copy(b"").write("a", True)
etstream.Source("a").read("b")
number: str = etstream.Source("a").size
etstream.graph("a", format="svg")
etstream.inspect("a")["parts"]
etstream.inspect("a").part
etstream.TestSuite("forward", [1])
etstream.pte("a", b"b")
etstream.verify(1)
etstream.bundle("a", [1], dry_run=True)
etstream.Source(2.5)
etstream.FilePlan.copy(b"").write(b"a")
etstream.save_ptd({"a": 1}, "b")
etstream.save_ptd({"a": b"1234"}, "b")
etstream.save_ptd({"a": Storage()}, "b")
etstream.verify([1])
etstream.verify([Path("a")])
etstream.verify({0: b"a"})
etstream.pte("a", segment_alignmnet=16, dry_run=True)
etstream.pte("a", "b", delegates="nowhere")
etstream.pte("a", "b", constants_out=True)
etstream.ProgramOptions(segment_alignmnet=16)
etstream.bundle("a", "b", "c", **etstream.BundleOptions(to="bp08"), to="bp08")
etstream.bundle("a", "b", "c", **etstream.BundleOptions() | {"hsah": True})
etstream.bundle("a", "b", "c", **etstream.ProgramOptions(keys={}))
etstream.explain("a", by=b"b")
etstream.reweight("a", was="b", now="c", output="d", weights_to=1.5)
"""


def checked(folder: Path, version: str, code: str) -> tuple[int, str]:
    (folder / "user.py").write_text(code)
    options = ["--strict", f"--python-version={version}", f"--cache-dir={folder}"]
    mypy = [sys.executable, "-m", "mypy", *options, "user.py"]
    done = subprocess.run(mypy, capture_output=True, text=True, timeout=120, cwd=folder)
    return done.returncode, done.stdout


@pytest.mark.parametrize("version", ["3.10", "3.12"])  # before and after buffers have a type of their own
def test_types(version: str, tmp_path: Path) -> None:
    assert checked(tmp_path, version, RIGHT) == (0, "Success: no issues found in 1 source file\n")
    code, said = checked(tmp_path, version, WRONG)
    lines = {line.split(":")[1] for line in said.splitlines() if ": error:" in line}
    expected = {str(i) for i, line in enumerate(WRONG.splitlines(), 1) if "etstream." in line}
    assert code == 1 and lines == expected, said


def test_types_are_there_at_run_time() -> None:
    for function in filter(inspect.isfunction, vars(etstream).values()):
        get_type_hints(function)
    assert get_type_hints(etstream.bundle)["hash"] is bool and "options" not in get_type_hints(etstream.bundle)
    for module in (etstream, etstream.executorch, etstream.results):
        for kind in filter(inspect.isclass, vars(module).values()):
            get_type_hints(kind)
    aliases = (etstream.SourceLike, etstream.OutputLike, etstream.StreamLike, etstream.TensorLike, etstream.TestCases)
    for alias in aliases:
        assert type(None) in (alias | None).__args__
    assert etstream.Source in etstream.SourceLike.__args__
    assert get_type_hints(etstream.verify)["file"] == etstream.SourceLike
