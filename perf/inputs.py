# SPDX-License-Identifier: BSD-3-Clause
"""Real programs of several sizes, each with a test case, exported by ExecuTorch and kept."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from transformers import (
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
)

MIB = 1 << 20


class Logits(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, return_dict=True).logits


def _image_model(model: torch.nn.Module) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    return Logits(model), (torch.randn(1, 3, 224, 224),)


def _embedding(size: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    return torch.nn.Embedding(size // 4096, 1024), (torch.randint(1000, (1, 16)),)


Model = Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]
MODELS: dict[str, Model] = {
    "MobileNetV2": lambda: _image_model(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000))),
    "ResNet-50": lambda: _image_model(ResNetForImageClassification(ResNetConfig(num_labels=1000))),
    "embedding of 512 MiB": lambda: _embedding(512 * MIB),
    "embedding of 1.9 GiB": lambda: _embedding(1945 * MIB),
}


@dataclass(frozen=True)
class Input:
    """Files of one model: for `etstream bundle`, and for ExecuTorch's writer."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "model.pte"

    @property
    def cases(self) -> Path:
        return self.folder / "cases.json"

    @property
    def executorch_cases(self) -> Path:
        return self.folder / "cases.pt"


def exported(name: str, cache: Path) -> Input:
    """The input from `cache`, made and put there if it isn't in it."""
    folder = cache / name.replace(" ", "-")
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            fresh = Path(scratch) / "input"
            fresh.mkdir()
            _export(MODELS[name], Input(fresh))
            fresh.rename(folder)
    return Input(folder)


def _export(make: Model, to: Input) -> None:
    torch.manual_seed(0)
    model, example = make()
    model.eval()
    with torch.no_grad():
        expected = model(*example)
        graph = torch.export.export(model, example)
    with to.program.open("wb") as file:
        to_edge(graph).to_executorch().write_to_file(file)
    torch.save({"forward": [(example, (expected,))]}, to.executorch_cases)
    np.save(to.folder / "input.npy", example[0].numpy())
    np.save(to.folder / "output.npy", expected.numpy())
    case = {"inputs": [{"npy": "input.npy"}], "expected_outputs": [{"npy": "output.npy"}]}
    to.cases.write_text(json.dumps({"forward": [case]}))
