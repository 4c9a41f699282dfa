# SPDX-License-Identifier: BSD-3-Clause
"""Shows that functions which need no torch, NumPy, tqdm or ExecuTorch work without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import io, json, sys, warnings

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy", "tqdm", "executorch", "ml_dtypes"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import etstream

program, cases, folder = sys.argv[1:]
plan = etstream.bundle(program, cases, folder + "/model.bpte")
output = io.BytesIO()
etstream.convert(open(folder + "/model.bpte", "rb").read(), output, to="segmented")
bundle = etstream.BundledProgramFile(output)
assert bundle.format == "segmented" and etstream.verify(output) and etstream.verify(folder + "/model.bpte")
assert bundle.program.read() == open(program, "rb").read()
data = memoryview(bytearray(24)).cast("f", (2, 3))
tensor = etstream.Tensor("float32", [2, 3], data)
etstream.ptd({"w": tensor}, folder + "/w.ptd")
assert etstream.Checkpoint(folder + "/w.ptd").tensors[0].data.read() == bytes(24)
assert etstream.inspect(program).methods[0].name == "forward"
etstream.pte(memoryview(open(program, "rb").read()), folder + "/model.pte", segment_alignment=64)
assert etstream.diff(program, folder + "/model.pte").same_content
case = etstream.TestCase([tensor, 1, 2.5, True, None])
assert [type(value).__name__ for value in case.inputs] == ["Tensor", "int", "float", "bool", "NoneType"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    plan.write(io.BytesIO(), progress=True)
assert "tqdm is not installed" in str(caught[0].message)
try:
    etstream.TestCase([object()])
except TypeError as error:
    assert "found object" in str(error)
assert not {"torch", "numpy", "executorch"} & set(sys.modules)
print("done")
"""


def test_etstream_works_alone(tmp_path: Path, program: Path, cases: Path) -> None:
    arguments = [sys.executable, "-W", "ignore::ResourceWarning", "-c", SCRIPT, program, cases, tmp_path]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")
