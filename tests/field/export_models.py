# SPDX-License-Identifier: BSD-3-Clause
"""Exports small models with the ExecuTorch that is imported.

    python export_models.py FOLDER [--describe]

writes FOLDER/NAME.pte, NAME.bpte and, for a model with data outside, NAME.ptd. With --describe it also writes
FOLDER/NAME/, from which write_as.py makes any release write the same program. For each model a line is printed:
{"name": NAME, "error": null or the release's message}.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Model:
    """A model: its methods by name, each a module and its inputs, and how they are exported."""

    methods: dict[str, tuple[torch.nn.Module, list[Inputs]]]
    xnnpack: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None

    @classmethod
    def of(cls, module: torch.nn.Module, *inputs: Inputs, **how: Any) -> Model:
        return cls({"forward": (module.eval(), list(inputs))}, **how)


class Scaled(torch.nn.Module):
    """A model that takes every kind of value that a program's input can be."""

    def forward(self, x: torch.Tensor, factor: int, offset: float, negate: bool) -> torch.Tensor:
        y = x * factor + offset
        return -y if negate else y


class Counter(torch.nn.Module):
    """A model that keeps its input, and counts from a state that it begins with."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 5))
        self.register_buffer("count", torch.arange(1, 16, dtype=torch.float32).reshape(3, 5))
        self.weight = torch.nn.Parameter(torch.randn(5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.last.copy_(x)
        self.count.add_(1)
        return self.last * self.weight, self.count * 2


class Attention(torch.nn.Module):
    """A layer of a transformer, with the table of its embeddings, which may be of another dtype."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 32, dtype=dtype)
        self.projection = torch.nn.Linear(32, 96, bias=False)
        self.norm = torch.nn.LayerNorm(32)
        self.output = torch.nn.Linear(32, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens).to(torch.float32)
        q, k, v = self.projection(self.norm(x)).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, dim=-1)
        return self.output(x + weights @ v)


class Reduction(torch.nn.Module):
    """A model with inputs of several dtypes, two outputs of different dtypes, and no constants."""

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = tokens * mask.to(tokens.dtype)
        return kept.sum(dim=1), kept.to(torch.float64).mean(dim=0)


def _convolutions() -> torch.nn.Module:
    return torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU()),
        *(torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.ReLU()),
        *(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 10)),
    )


def _linears() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))


def _image() -> Inputs:
    return (torch.randn(1, 3, 16, 16),)


def convolutions() -> Model:
    return Model.of(_convolutions(), _image(), _image())


def channels_last() -> Model:
    """Returns a model with channels-last weights; bundles do not keep that order of inputs."""
    return Model.of(_convolutions().to(memory_format=torch.channels_last), _image())


def xnnpack() -> Model:
    return Model.of(_convolutions(), _image(), xnnpack=True)


def xnnpack_inline() -> Model:
    return Model.of(_convolutions(), _image(), xnnpack=True, config={"extract_delegate_segments": False})


def quantized() -> Model:
    """Returns a model that XNNPACK's quantizer quantizes, and that is delegated to XNNPACK."""
    module, image = _convolutions().eval(), _image()
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(module, image).module(), quantizer)
    prepared(*image)
    converted = convert_pt2e(prepared)
    return Model({"forward": (converted, [image])}, xnnpack=True)


def shared_weights() -> Model:
    """Returns two methods, both delegated, with the same weights as named data."""
    module = _linears().eval()
    doubled = torch.nn.Sequential(module, torch.nn.Hardtanh(-0.1, 0.1)).eval()
    inputs: list[Inputs] = [(torch.randn(2, 16),)]
    return Model({"plain": (module, inputs), "clamped": (doubled, inputs)}, xnnpack=True)


def external_constants() -> Model:
    return Model.of(_linears(), (torch.randn(2, 16),), config={"external_constants": True})


def two_methods() -> Model:
    scaled: list[Inputs] = [(torch.randn(3, 5), 2, 0.25, True) for _ in range(2)]
    reduced: list[Inputs] = [(torch.randint(-1000, 1000, (2, 7)), torch.rand(2, 7) < 0.5) for _ in range(3)]
    return Model({"scale": (Scaled(), scaled), "reduce": (Reduction(), reduced)})


def mutable_buffers() -> Model:
    config = {"passes": [InitializedMutableBufferPass(["count"])]}
    return Model.of(Counter(), (torch.randn(3, 5),), config=config)


def stack_traces() -> Model:
    return Model.of(_linears(), (torch.randn(2, 16),), config={"emit_stacktrace": True})


def attention() -> Model:
    length = torch.export.Dim("length", max=16)
    return Model.of(Attention(), (torch.randint(50, (1, 9)),), dynamic_shapes=({1: length},))


def half() -> Model:
    return Model.of(Attention(torch.float16), (torch.randint(50, (1, 9)),))


def laid_out() -> Model:
    """Returns a model under alignments other than the usual."""
    config = {"segment_alignment": 4096, "constant_tensor_alignment": 64, "delegate_alignment": 32}
    return Model.of(_linears(), (torch.randn(2, 16),), config=config)


MODELS = {
    make.__name__: make
    for make in (
        *(convolutions, channels_last, xnnpack, xnnpack_inline, quantized, shared_weights, external_constants),
        *(two_methods, mutable_buffers, stack_traces, attention, half, laid_out),
    )
}


def export(model: Model) -> Any:
    """Returns ExecuTorch's program manager of a model."""
    graphs = {
        name: torch.export.export(module, inputs[0], dynamic_shapes=model.dynamic_shapes)
        for name, (module, inputs) in model.methods.items()
    }
    config = ExecutorchBackendConfig(**model.config)
    if not model.xnnpack:
        return to_edge(graphs).to_executorch(config)
    partitioner = {name: [XnnpackPartitioner()] for name in graphs}
    return to_edge_transform_and_lower(graphs, partitioner=partitioner).to_executorch(config)


def outputs_of(module: torch.nn.Module, inputs: Inputs) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        outputs = module(*inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def write(name: str, make: Callable[[], Model], folder: Path, described: bool) -> None:
    torch.manual_seed(0)
    model = make()
    manager = export(model)
    # The cases are run after the export, as they change the state that a module begins with.
    cases = {
        method: [(one, outputs_of(module, one)) for one in inputs] for method, (module, inputs) in model.methods.items()
    }
    (folder / f"{name}.pte").write_bytes(manager.buffer)
    suites = [MethodTestSuite(method, [MethodTestCase(*case) for case in group]) for method, group in cases.items()]
    bundle = serialize_from_bundled_program_to_flatbuffer(BundledProgram(manager, suites))
    (folder / f"{name}.bpte").write_bytes(bundle)
    with tempfile.TemporaryDirectory() as scratch:
        manager.write_tensor_data_to_file(scratch)
        for file in Path(scratch).iterdir():
            (folder / f"{name}.ptd").write_bytes(file.read_bytes())
    if described:
        # The import is only here, as it needs what older releases lack.
        from descriptions import describe_export, describe_suites, suite_of

        describe_export(manager, folder / name)
        describe_suites([suite_of(*each) for each in cases.items()], folder / name, by_method=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--only", action="append", choices=MODELS, default=[])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in arguments.only or MODELS:
        error = None
        try:
            with contextlib.redirect_stdout(sys.stderr):
                write(name, MODELS[name], arguments.folder, arguments.describe)
        except Exception as caught:  # any exception means that the release does not export that
            error = f"{type(caught).__name__}: {caught}"
        print(json.dumps({"name": name, "error": error}), flush=True)


if __name__ == "__main__":
    main()
