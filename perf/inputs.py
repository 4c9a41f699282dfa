# SPDX-License-Identifier: BSD-3-Clause
"""Exports real programs of several sizes with ExecuTorch, each with a test case, and keeps them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from executorch.exir import to_edge
from transformers import (
    DeiTConfig,
    DeiTForImageClassification,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))
from cases import Store, write_cases  # noqa: E402
from models import Logits, ModelCase, make_once, to_suites  # noqa: E402

MIB = 1 << 20


def _image_model(model: torch.nn.Module) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    return Logits(model), (torch.randn(1, 3, 224, 224),)


def _embedding(size: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    return torch.nn.Embedding(size // 4096, 1024), (torch.randint(1000, (1, 16)),)


def _wav2letter() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """Returns a model of waveforms, with the vocabulary and the input of ExecuTorch's example."""
    layers: list[torch.nn.Module] = []
    # The channels in and out, and the kernel's width, stride and padding.
    shapes = [(1, 250, 250, 160, 45), (250, 250, 48, 2, 23), *[(250, 250, 7, 1, 3)] * 7]
    shapes += [(250, 2000, 32, 1, 16), (2000, 2000, 1, 1, 0), (2000, 4096, 1, 1, 0)]
    for *shape, stride, padding in shapes:
        layers += [torch.nn.Conv1d(*shape, stride=stride, padding=padding), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.LogSoftmax(dim=1)), (torch.randn(10, 1, 700),)


_DEIT_TINY = DeiTConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000)

Model = Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]
MODELS: dict[str, Model] = {
    "MobileNetV2": lambda: _image_model(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000))),
    "ResNet-50": lambda: _image_model(ResNetForImageClassification(ResNetConfig(num_labels=1000))),
    "DeiT tiny": lambda: _image_model(DeiTForImageClassification(_DEIT_TINY)),
    "wav2letter": _wav2letter,
    "embedding of 512 MiB": lambda: _embedding(512 * MIB),
    "embedding of 1.9 GiB": lambda: _embedding(1945 * MIB),
}


@dataclass(frozen=True)
class Input:
    """The files of one model, for `etstream bundle` and for ExecuTorch's writer."""

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
    """Returns the input from `cache`; makes it and puts it there first if it is missing."""
    folder = cache / name.replace(" ", "-")
    make_once(folder, lambda fresh: _export(MODELS[name], Input(fresh)))
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
    cases = {"forward": [ModelCase(example, (expected,))]}
    write_cases(to.folder, to_suites(cases, Store.NPY), by_method=True)
