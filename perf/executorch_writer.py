# SPDX-License-Identifier: BSD-3-Clause
"""Writes a bundle in ExecuTorch's own way, to be measured from outside.

    python executorch_writer.py direct|json PROGRAM.pte CASES.pt OUT.bpte

Imports, then says "ready" and waits for a line; its work from there on is measured. Prints seconds and CPU seconds.
"""

from __future__ import annotations

import os
import sys
import time

import torch
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    convert_to_flatbuffer,
    serialize_from_bundled_program_to_flatbuffer,
    serialize_from_bundled_program_to_json,
)


def main() -> None:
    way, program, cases, output = sys.argv[1:]
    suites = [
        MethodTestSuite(method, [MethodTestCase(inputs, outputs) for inputs, outputs in group])
        for method, group in torch.load(cases, weights_only=True).items()
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    start, cpu = time.perf_counter(), _cpu()
    bundled = BundledProgram(None, suites, pte_file_path=program)
    if way == "direct":
        data = serialize_from_bundled_program_to_flatbuffer(bundled)
    else:
        data = convert_to_flatbuffer(
            serialize_from_bundled_program_to_json(bundled.serialize_to_schema())
        )
    with open(output, "wb") as file:
        file.write(data)
    print(time.perf_counter() - start, _cpu() - cpu, flush=True)


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
