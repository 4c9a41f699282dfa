# SPDX-License-Identifier: BSD-3-Clause
"""Runs exports as people write them, each in a process of its own.

    python export_workloads.py [--low] llm WEIGHTS:KERNELS CHECKPOINT_FOLDER OUTPUT.pte
    python export_workloads.py [--low] module NAME ARGS...

`llm` takes Hugging Face's model through transformers' module for exporting decoders. WEIGHTS: bf16, fp32, 8da4w,
int4, int8 (the last three as torchao quantizes them) or static (eight bits, by pt2e). KERNELS: portable, xnnpack, or
vulkan, for which the model has no cache. `module` runs a script as `python -m` does. --low puts either into
low_memory_export().
"""

from __future__ import annotations

import contextlib
import runpy
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

CACHE = 128
GROUP = 32


def decoder(checkpoint: str, weights: str) -> Any:
    """Returns a decoder with a static cache, quantized by torchao if `weights` says so."""
    import torch
    from transformers import GenerationConfig, LlamaForCausalLM

    dtype = torch.bfloat16 if weights == "bf16" else torch.float32
    model = LlamaForCausalLM.from_pretrained(checkpoint, dtype=dtype, attn_implementation="sdpa").eval()
    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=CACHE,
        cache_config={"batch_size": 1, "max_cache_len": CACHE},
    )
    quantize(model, weights)
    return model


def graph_of(model: Any, inputs: dict[str, Any], with_cache: bool) -> Any:
    import torch
    from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.model(input_ids, use_cache=False, return_dict=True).logits
            return logits

    if with_cache:
        return TorchExportableModuleForDecoderOnlyLM(model).export(**inputs)
    return torch.export.export(Logits(), (inputs["input_ids"],))


def quantize(model: torch.nn.Module, weights: str) -> None:
    import torch
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    configs = {
        "8da4w": Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(GROUP)
        ),
        "int4": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(GROUP)),
        "int8": IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0)),
    }
    if weights in configs:
        quantize_(model, configs[weights])


def quantize_statically(graph: Any, inputs: dict[str, Any]) -> Any:
    """Returns the graph with weights and activations of eight bits, calibrated with the inputs."""
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(graph.module(), quantizer)
    prepared(**inputs)
    return torch.export.export(convert_pt2e(prepared), args=(), kwargs=inputs)


def partitioners(kernels: str) -> list[Any]:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
        XnnpackPartitioner,
    )

    return {
        "portable": lambda: [],
        "xnnpack": lambda: [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()],
        "vulkan": lambda: [VulkanPartitioner()],
    }[kernels]()


def export_llm(kind: str, checkpoint: str, output: str) -> None:
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    weights, kernels = kind.split(":")
    inputs = {"input_ids": torch.tensor([[1]]), "cache_position": torch.tensor([0])}
    with torch.no_grad():
        # Vulkan's lowering loses the cache that a program writes to.
        graph = graph_of(decoder(checkpoint, weights), inputs, with_cache=kernels != "vulkan")
        if weights == "static":
            graph = quantize_statically(graph, inputs)
        edge = to_edge_transform_and_lower(
            graph, partitioner=partitioners(kernels), compile_config=EdgeCompileConfig(_check_ir_validity=False)
        )
        del graph
        edge.to_executorch().save(output)


def main() -> None:
    low = sys.argv[1] == "--low"
    what, *arguments = sys.argv[2 if low else 1 :]
    with contextlib.ExitStack() as stack:
        if low:
            from etstream.executorch import low_memory_export

            stack.enter_context(low_memory_export(Path(tempfile.gettempdir())))
        if what == "llm":
            export_llm(*arguments)
        else:
            sys.argv = arguments
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
