# SPDX-License-Identifier: BSD-3-Clause
"""Compiles a small model for Arm's targets, by ExecuTorch alone or with etstream.

    python arm_compilations.py executorch|etstream FOLDER

writes FOLDER/cnn_arm_delegate_TARGET.bpte and .pte, of all TARGETS, and FOLDER/external/ with a program whose blocks of
Vela's are in .ptd files.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arm_models
import torch

TARGETS = {
    "TOSA-1.0+FP": [],
    "TOSA-1.0+INT": ["-q"],
    "ethos-u55-128": ["-q"],
    "ethos-u85-256": ["-q"],
}


def compile_target(main: Callable[[], None], model: Path, target: str, folder: Path) -> None:
    """Compiles a program, and a bundle with its ETRecord."""
    for more in ([], ["--bundleio"]):
        sys.argv = ["compiler", "-m", str(model), "-d", "-o", str(folder), "-t", target, *TARGETS[target], *more]
        main()


def export_with_external_blocks() -> Any:
    """Returns ExecuTorch's manager of the model for Ethos-U85, with commands and weights as named data."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner, VelaExternalBlockPlacements
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    placements = VelaExternalBlockPlacements(cmd_data="commands", weight_data="weights")
    spec = EthosUCompileSpec("ethos-u85-256", external_block_placements=placements)
    model, inputs = arm_models.cnn()
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    quantized = torch.export.export(convert_pt2e(prepared), inputs)
    edge = to_edge_transform_and_lower(quantized, partitioner=[EthosUPartitioner(spec)])
    return edge.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=False))


def save(manager: Any, folder: Path) -> None:
    """Saves the program and its tensor data by ExecuTorch's own functions."""
    folder.mkdir()
    manager.save(str(folder / "model.pte"))
    manager.write_tensor_data_to_file(str(folder))


def main() -> None:
    way, folder = sys.argv[1], Path(sys.argv[2])
    with contextlib.ExitStack() as stack:
        if way == "etstream":
            import etstream.aot_arm_compiler as compiler
            import etstream.executorch

            stack.enter_context(etstream.executorch.install())
        else:
            from executorch.backends.arm.scripts import aot_arm_compiler as compiler
        save(export_with_external_blocks(), folder / "external")
    model = arm_models.write_cnn(folder)
    for target in TARGETS:
        compile_target(compiler.main, model, target, folder)
    assert way == "etstream" or "etstream" not in sys.modules


if __name__ == "__main__":
    main()
