# SPDX-License-Identifier: BSD-3-Clause
"""Exports the programs that are mutated, small ones of every kind that ExecuTorch exports, and those of
valid_models.py.

    python tests/mutants/programs.py FOLDER [NAME...]

writes FOLDER/NAME.pte and FOLDER/NAME.inputs, the inputs of its methods.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import executorch.kernels.quantized  # noqa: F401  # operators that write to their arguments
import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

sys.path.append(str(Path(__file__).resolve().parents[1] / "field"))
import export_models  # noqa: E402
import valid_models  # noqa: E402
from mutants import PROGRAMS  # noqa: E402
from export_models import Model  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Export:
    program: bytes
    inputs: dict[str, tuple[Any, ...]]  # the inputs by method


class ControlFlow(torch.nn.Module):
    """A model that takes one of two ways, and goes round a loop."""

    def forward(self, choice: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        taken = torch.cond(choice, lambda x: torch.sin(x) + 1, lambda x: torch.cos(x) * 2, (x,))
        rows = torch.ops.higher_order.map_impl(lambda row: (row * 2 + 1,), (x,), ())[0]
        return taken, rows


class Kinds(torch.nn.Module):
    """A model of operators whose arguments are lists, none and numbers, and of one with lists of tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv1d(4, 4, 3, padding=1, groups=2)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.norm(self.convolution(x))
        low, high = torch.split(y, 4, dim=2)
        both = torch.cat([low.clamp(min=-1.0), torch.nn.functional.pad(high, (1, 1))], dim=2)
        picked = x[:, at]
        best, where = torch.topk(both, 2)
        return both.permute(0, 2, 1).mean(dim=[1]), picked.sum(dim=(1, 2)), best, where, torch.full((2, 2), 0.5)


def control_flow() -> Model:
    return Model.of(ControlFlow(), (torch.tensor(True), torch.randn(3, 4)))


def kinds() -> Model:
    return Model.of(Kinds(), (torch.randn(1, 4, 8), torch.tensor([2, 0])))


def quantized_kernels() -> Model:
    """Returns a model that XNNPACK's quantizer quantizes, but that the kernels for quantized tensors run."""
    module, image = export_models._convolutions().eval(), export_models._image()
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(module, image).module(), quantizer)
    prepared(*image)
    return Model({"forward": (convert_pt2e(prepared), [image])})


def dynamic_xnnpack() -> Model:
    length = torch.export.Dim("length", min=2, max=16)
    return Model.of(
        export_models._linears(), (torch.randn(4, 16),), xnnpack=True, dynamic_shapes=({0: length},)
    )


_MODELS: dict[str, Callable[[], Model]] = {
    "portable": export_models.MODELS["convolutions"],
    "kinds": kinds,
    "two_methods": export_models.MODELS["two_methods"],
    "dynamic": export_models.MODELS["attention"],
    "mutable_buffers": export_models.MODELS["mutable_buffers"],
    "control_flow": control_flow,
    "quantized_kernels": quantized_kernels,
    "xnnpack": export_models.MODELS["xnnpack"],
    "xnnpack_quantized": export_models.MODELS["quantized"],
    "xnnpack_dynamic": dynamic_xnnpack,
    "xnnpack_named_data": export_models.MODELS["shared_weights"],
    **valid_models.MODELS,
}


def _of_model(model: Model) -> Export:
    if model.xnnpack:
        manager = export_models.export(model)
    else:
        graphs = {
            name: torch.export.export(module, inputs[0], dynamic_shapes=model.dynamic_shapes, strict=False)
            for name, (module, inputs) in model.methods.items()
        }
        edge = to_edge(graphs, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        manager = edge.to_executorch(ExecutorchBackendConfig(**model.config))
    return Export(manager.buffer, {name: inputs[0] for name, (_, inputs) in model.methods.items()})


def _llama() -> Export:
    """Exports a Llama with a cache of keys and values, and the operators of ExecuTorch's library for it."""
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs
    from executorch.examples.models.llama.source_transformation.quantize import EmbeddingQuantHandler
    from executorch.examples.models.llama.source_transformation.sdpa import replace_sdpa_with_custom_op
    from executorch.exir.passes.quant_fusion_pass import QuantFusionPass
    from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass

    shape = ModelArgs(
        dim=32,
        hidden_dim=64,
        n_layers=1,
        n_heads=2,
        n_kv_heads=1,
        vocab_size=64,
        max_seq_len=16,
        max_context_len=16,
        use_kv_cache=True,
        use_sdpa_with_kv_cache_op=True,
        enable_dynamic_shape=True,
        generate_full_logits=False,
    )
    model = replace_sdpa_with_custom_op(construct_transformer(shape).eval())
    model = EmbeddingQuantHandler(model, bitwidth=8, group_size=0, packed=False).quantized_model()
    inputs = (torch.tensor([[1, 2, 3]]), {"input_pos": torch.tensor([0])})
    length = torch.export.Dim("length", max=15)
    with torch.no_grad(), torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
        graph = torch.export.export(
            model, inputs, dynamic_shapes=({1: length}, {"input_pos": {0: 1}}), strict=True
        )
    edge = to_edge(graph, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    manager = edge.to_executorch(
        ExecutorchBackendConfig(
            passes=[QuantFusionPass()], sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass()
        )
    )
    return Export(manager.buffer, {"forward": (inputs[0], inputs[1]["input_pos"])})


def export(name: str) -> Export:
    torch.manual_seed(0)
    return _llama() if name == "llama" else _of_model(_MODELS[name]())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=PROGRAMS, choices=PROGRAMS, metavar="NAME")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in arguments.names:
        exported = export(name)
        (arguments.folder / f"{name}.pte").write_bytes(exported.program)
        torch.save(exported.inputs, arguments.folder / f"{name}.inputs")


if __name__ == "__main__":
    main()
