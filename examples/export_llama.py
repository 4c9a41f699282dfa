# SPDX-License-Identifier: BSD-3-Clause
"""Exports a Llama for XNNPACK, with its weights quantized to four bits, and bundles it with a test case, in memory that
does not grow with the weights.

    etstream profile -- python examples/export_llama.py [CHECKPOINT] [-o llama.bpte]

CHECKPOINT is a folder as save_pretrained() writes it. Without one, a small Llama with random weights is made. `etstream
profile` prints the most memory that each phase used; without it the script does the same.

ExecuTorch's own script runs unchanged:

    etstream run --report -- python -m executorch.examples.models.llama.export_llama -c consolidated.00.pth \\
        -p params.json --model llama3_2 -kv --use_sdpa_with_kv_cache -d fp32 -X -qmode 8da4w -G 32 -E 4,32
"""

import argparse
import os
import tempfile

from etstream.profile import phase

with phase("imports"):
    import torch
    from etstream.executorch import low_memory_export, open_bundle, save_bundled_program
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
        XnnpackPartitioner,
    )
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from transformers import LlamaConfig, LlamaForCausalLM


class Logits(torch.nn.Module):
    def __init__(self, llama: LlamaForCausalLM) -> None:
        super().__init__()
        self.llama = llama

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.llama(tokens, use_cache=False, return_dict=True).logits


def make_small_llama(folder: str) -> str:
    config = LlamaConfig(
        hidden_size=512, intermediate_size=2048, num_hidden_layers=2, num_attention_heads=8, vocab_size=32000
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def export(checkpoint: str, output: str) -> None:
    eight_by_four_bits = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    # The file that holds large blocks of memory goes beside the output.
    with low_memory_export(os.path.dirname(os.path.abspath(output))), torch.no_grad():
        with phase("load"):
            model = Logits(LlamaForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval())
        with phase("quantize"):
            quantize_(model, eight_by_four_bits)
        tokens = torch.arange(8).reshape(1, 8)
        with phase("expected output"):
            suite = MethodTestSuite("forward", [MethodTestCase([tokens], [model(tokens)])])
        with phase("export"):
            graph = torch.export.export(model, (tokens,))
        with phase("lower"):
            partitioners = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
            edge = to_edge_transform_and_lower(graph, partitioner=partitioners)
        with phase("to_executorch"):
            program = edge.to_executorch()
        with phase("bundle"):
            save_bundled_program((program, [suite]), output, to="segmented")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", nargs="?")
    parser.add_argument("-o", "--output", default="llama.bpte")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with phase("make a Llama"):
            checkpoint = arguments.checkpoint or make_small_llama(folder)
        export(checkpoint, arguments.output)
    with phase("verify"):
        # The runtime and torch round the activations to eight bits at different places.
        result = open_bundle(arguments.output).verify("forward", 0, rtol=1e-2, atol=0.1)
    print(result)
    raise SystemExit(0 if result else 1)


if __name__ == "__main__":
    main()
