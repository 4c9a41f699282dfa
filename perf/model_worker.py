# SPDX-License-Identifier: BSD-3-Clause
"""Exports and bundles a model, in a process that says what phase it is in.

    python model_worker.py executorch|etstream MODEL OUT.bpte
"""

from __future__ import annotations

import contextlib
import sys

import torch
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import to_edge

import etstream.executorch
from inputs import MODELS
from phase_table import phases


def main() -> None:
    way, name, output = sys.argv[1:]
    torch.manual_seed(0)
    phases.enter("model")
    model, inputs = MODELS[name]()
    model.eval()
    with torch.no_grad():
        suite = MethodTestSuite("forward", [MethodTestCase(inputs, (model(*inputs),))])
    phases.enter("export")
    edge = to_edge(torch.export.export(model, inputs))
    with etstream.executorch.install() if way == "etstream" else contextlib.nullcontext():
        phases.enter("to_executorch")
        manager = edge.to_executorch()
        phases.enter("bundle")
        bundle = BundledProgram(manager, [suite])
        if way == "etstream":
            etstream.executorch.save_bundled_program(bundle, output)
        else:
            data = serialize_from_bundled_program_to_flatbuffer(bundle)
            with open(output, "wb") as file:
                file.write(data)
        phases.enter("end")


if __name__ == "__main__":
    main()
