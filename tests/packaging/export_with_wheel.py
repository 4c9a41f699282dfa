# SPDX-License-Identifier: BSD-3-Clause
"""Exports a model for XNNPACK with the etstream that is installed, and runs what came of it; in the working folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import etstream
import torch
from etstream.executorch import install, low_memory_export, open_bundle, save_program
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.exir import ExecutorchProgramManager, to_edge_transform_and_lower

COMMAND = Path(sys.prefix, "bin", "etstream")
# 4 MiB a layer.
WIDTH = 1024


def main() -> None:
    assert Path(etstream.__file__).is_relative_to(sys.prefix), etstream.__file__
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)).eval()
    inputs = (torch.randn(2, WIDTH),)

    def export() -> ExecutorchProgramManager:
        graph = torch.export.export(model, inputs)
        return to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()]).to_executorch()

    plain = bytes(export().buffer)
    spill = Path("spill")
    spill.mkdir()
    with install() as installation, low_memory_export(spill) as report:
        save_program(export(), "model.pte")
    assert any(function.used for function in installation.functions), installation
    assert Path("model.pte").read_bytes() == plain
    assert (report.heap, report.refused) == ("here", 0) and report.blocks > 0 and report.spilled > 0, report
    print(report)

    cases = [MethodTestCase(inputs=inputs, expected_outputs=model(*inputs))]
    etstream.bundle("model.pte", [MethodTestSuite(method_name="forward", test_cases=cases)], "model.bpte")
    etstream.verify("model.bpte").raise_if_errors()
    with open_bundle("model.bpte") as bundle:
        ran = bundle.verify_all(rtol=1e-3, atol=1e-3)
    assert ran, ran
    # The wheel's other two binaries.
    subprocess.run([COMMAND, "verify", "model.bpte"], check=True)
    again = "import sys, torch; sys.exit('etstream' not in open('/proc/self/maps').read())"
    subprocess.run([COMMAND, "run", "--spill", spill, "--", sys.executable, "-c", again], check=True)
    print(f"etstream {etstream.__version__}: exported, bundled, run on ExecuTorch")


if __name__ == "__main__":
    main()
