# SPDX-License-Identifier: BSD-3-Clause
"""Exports real models with ExecuTorch, with test cases and the bundle that it makes of them.

    python tests/peer/models.py mobilenet_v2 -o DIR

writes DIR/mobilenet_v2.pte, DIR/cases.json with its tensors, and DIR/expected.bpte: the bundle that `etstream bundle
DIR/mobilenet_v2.pte --cases DIR/cases.json` has to write.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.metadata
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from cases import Case, Store, Suite, Tensor, write_cases
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import (
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir.emit import EmitterOutput
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from layouts import write_plans
from transformers import (
    DeiTConfig,
    DeiTForImageClassification,
    LlamaConfig,
    LlamaForCausalLM,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
)

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.append(str(_EXAMPLES))
import make_example  # noqa: E402


@dataclass(frozen=True)
class ModelCase:
    """A method's inputs, and the model's outputs for them in eager mode."""

    inputs: tuple[Any, ...]
    outputs: tuple[torch.Tensor, ...]


CasesByMethod = dict[str, list[ModelCase]]


@dataclass(frozen=True)
class Emitted:
    """The input of ExecuTorch's serializers."""

    output: EmitterOutput
    named_data: NamedDataStoreOutput | None

    @classmethod
    def of(cls, manager: ExecutorchProgramManager) -> Emitted:
        return cls(manager._emitter_output, manager._named_data)


@dataclass(frozen=True)
class Export:
    manager: ExecutorchProgramManager
    cases: CasesByMethod


class Logits(torch.nn.Module):
    """A transformers model that takes one tensor and returns its logits alone."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, return_dict=True).logits


class Affine(torch.nn.Module):
    """A model that takes every kind of value that a program's input can be."""

    def forward(self, x: torch.Tensor, factor: int, offset: float, negate: bool) -> torch.Tensor:
        y = x * factor + offset
        return -y if negate else y


class Spectrum(torch.nn.Module):
    """A model with outputs of complex64."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.tensor([0.5, 1.0, 1.0, 0.5]))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(signal * self.window)


class Count(torch.nn.Module):
    """A model with inputs of several dtypes, and two outputs of different dtypes."""

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        kept = tokens * mask.to(tokens.dtype)
        return kept.sum(dim=1), kept.to(torch.float64).mean(dim=0)


class ConvolutionStack(torch.nn.Module):
    """The one-dimensional convolutions of wav2letter, with fewer channels."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        # The channels in and out, and the kernel's width.
        for shape in [(64, 64, 48), *[(64, 64, 7)] * 7, (64, 256, 32), (256, 256, 1), (256, 29, 1)]:
            stride, padding = (2, 23) if shape[2] == 48 else (1, shape[2] // 2)
            layers += [torch.nn.Conv1d(*shape, stride=stride, padding=padding), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers[:-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.log_softmax(self.layers(x), dim=1)


class Buffers(torch.nn.Module):
    """A model that keeps a tensor that it was given, and counts from a state that it begins with."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 5))
        self.register_buffer("count", torch.arange(1, 16, dtype=torch.float32).reshape(3, 5))
        self.weight = torch.nn.Parameter(torch.randn(5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.last.copy_(x)
        self.count.add_(1)
        return self.last * self.weight, self.count * 2


class Doubled(torch.nn.Module):
    """A second method of a module, with the same weights."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x) * 2


def mobilenet_v2() -> Export:
    model, inputs = _mobilenet_v2()
    graph = torch.export.export(model, inputs[0])
    return Export(to_edge(graph).to_executorch(), _forward_cases(model, inputs))


def mobilenet_v2_xnnpack_inline() -> Export:
    """Exports a MobileNetV2 delegated to XNNPACK, with the delegates' data inside the flatbuffer."""
    model, inputs = _mobilenet_v2()
    graph = torch.export.export(model, inputs[0])
    lowered = to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()])
    config = ExecutorchBackendConfig(extract_delegate_segments=False)
    return Export(lowered.to_executorch(config), _forward_cases(model, inputs))


def llama() -> Export:
    config = LlamaConfig(
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=1000,
        max_position_embeddings=128,
        use_cache=False,
    )
    model = Logits(LlamaForCausalLM(config)).eval()
    inputs = [(torch.randint(config.vocab_size, (1, 16)),) for _ in range(2)]
    graph = torch.export.export(model, inputs[0])
    return Export(to_edge(graph).to_executorch(), _forward_cases(model, inputs))


def two_methods() -> Export:
    affine, count = Affine(), Count()
    affine_inputs = [(torch.randn(3, 5), 2, 0.25, True) for _ in range(2)]
    count_inputs = [(torch.randint(-1000, 1000, (2, 7)), torch.rand(2, 7) < 0.5) for _ in range(3)]
    graphs = {
        "scale": torch.export.export(affine, affine_inputs[0]),
        "count": torch.export.export(count, count_inputs[0]),
    }
    return Export(
        to_edge(graphs).to_executorch(),
        {
            "scale": _eager_cases(affine, affine_inputs),
            "count": _eager_cases(count, count_inputs),
        },
    )


def spectrum() -> Export:
    # ExecuTorch compares complex numbers bit by bit; the spectra of these four numbers are exact.
    cases = _forward_cases(Spectrum(), [(torch.tensor([[1.0, 2.0, 3.0, 5.0]]),), (torch.ones(1, 4),)])
    program = torch.export.export(Spectrum(), cases["forward"][0].inputs)
    return Export(to_edge(program).to_executorch(), cases)


def example() -> Export:
    """Exports the model of examples/."""
    model = make_example.make_model()
    inputs = [(image,) for image in make_example.make_inputs(2)]
    return Export(make_example.compile_model(model, *inputs[0]), _forward_cases(model, inputs))


def resnet50() -> Export:
    """Exports a ResNet-50 without test cases: ExecuTorch's portable kernels would take half a minute for one."""
    model = Logits(ResNetForImageClassification(ResNetConfig(num_labels=1000))).eval()
    graph = torch.export.export(model, (torch.randn(1, 3, 224, 224),))
    return Export(to_edge(graph).to_executorch(), {})


def deit_tiny() -> Export:
    config = DeiTConfig(
        hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000
    )
    model = Logits(DeiTForImageClassification(config)).eval()
    inputs = [(torch.randn(1, 3, 224, 224),)]
    graph = torch.export.export(model, inputs[0])
    return Export(to_edge(graph).to_executorch(), _forward_cases(model, inputs))


def convolution_stack() -> Export:
    model, inputs = ConvolutionStack().eval(), [(torch.randn(1, 64, 128),)]
    graph = torch.export.export(model, inputs[0])
    return Export(to_edge(graph).to_executorch(), _forward_cases(model, inputs))


def mutable_buffers() -> Export:
    """Exports buffers without their first values, so that nobody can say what the model counts to."""
    graph = torch.export.export(Buffers(), (torch.randn(3, 5),))
    return Export(to_edge(graph).to_executorch(), {})


def initialized_buffers() -> Export:
    """Exports buffers with a segment of the first values of one; the first values of the other do not matter."""
    model, inputs = Buffers(), [(torch.randn(3, 5),)]
    graph = torch.export.export(model, inputs[0])
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["count"])])
    return Export(to_edge(graph).to_executorch(config), _forward_cases(model, inputs))


def shared_named_data() -> Export:
    """Exports two methods, both delegated to XNNPACK, with the same weights as named data."""
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    methods = {"plain": module.eval(), "doubled": Doubled(module).eval()}
    inputs = [(torch.randn(2, 32),)]
    lowered = to_edge_transform_and_lower(
        {name: torch.export.export(method, inputs[0]) for name, method in methods.items()},
        partitioner={name: [XnnpackPartitioner()] for name in methods},
    )
    cases = {name: _eager_cases(method, inputs) for name, method in methods.items()}
    return Export(lowered.to_executorch(), cases)


def external_constants() -> Export:
    """Exports a model with some of its constants in a .ptd file."""
    module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).eval()
    inputs = [(torch.randn(2, 16),)]
    graph = torch.export.export(module, inputs[0])

    def file_of(node: torch.fx.Node) -> str | None:
        return "weights" if "weight" in node.name else None

    config = ExecutorchBackendConfig(external_constants=file_of)
    return Export(to_edge(graph).to_executorch(config), _forward_cases(module, inputs))


def _by_name(*models: Callable[[], Export]) -> dict[str, Callable[[], Export]]:
    return {model.__name__: model for model in models}


# The models that are bundled.
MODELS = _by_name(mobilenet_v2, mobilenet_v2_xnnpack_inline, llama, two_methods, spectrum, example)

# The models whose programs are laid out again. As exporting takes long, bundles of the others are not made.
PROGRAMS = MODELS | _by_name(
    resnet50,
    deit_tiny,
    convolution_stack,
    mutable_buffers,
    initialized_buffers,
    shared_named_data,
    external_constants,
)

# The models of so many bytes or tables that they are laid out in fewer ways.
LARGE_PROGRAMS = ("resnet50", "deit_tiny")


def _mobilenet_v2() -> tuple[Logits, list[tuple[torch.Tensor]]]:
    model = MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000))
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            # The config's own initialisation makes the logits vanish.
            torch.nn.init.kaiming_normal_(module.weight)
    return Logits(model).eval(), [(torch.randn(1, 3, 224, 224),) for _ in range(2)]


def _forward_cases(model: torch.nn.Module, inputs: Sequence[tuple[Any, ...]]) -> CasesByMethod:
    return {"forward": _eager_cases(model, inputs)}


def _eager_cases(model: torch.nn.Module, inputs: Sequence[tuple[Any, ...]]) -> list[ModelCase]:
    return [ModelCase(one, _eager_outputs(model, one)) for one in inputs]


def _eager_outputs(model: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        outputs = model(*inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def export(name: str) -> Export:
    """Exports a model; the program and the cases are the same each time."""
    torch.manual_seed(0)
    return PROGRAMS[name]()


def executorch_bundle(exported: Export) -> bytes:
    """Returns the bundle that ExecuTorch's public API makes."""
    suites = [
        MethodTestSuite(method, [MethodTestCase(case.inputs, case.outputs) for case in cases])
        for method, cases in exported.cases.items()
    ]
    return serialize_from_bundled_program_to_flatbuffer(BundledProgram(exported.manager, suites))


def to_suites(cases: CasesByMethod, store: Store) -> list[Suite]:
    """Returns the cases as CASES.json has them, with every tensor in one kind of file."""

    def stored(values: Sequence[Any]) -> list[Any]:
        return [
            Tensor.from_torch(value, store) if isinstance(value, torch.Tensor) else value
            for value in values
        ]

    return [
        Suite(method, [Case(stored(case.inputs), stored(case.outputs)) for case in group])
        for method, group in cases.items()
    ]


def write_for_command(exported: Export, program: Path, store: Store) -> None:
    """Writes `program`, and next to it cases.json and the expected.bpte to be made of both."""
    folder = program.parent
    program.write_bytes(exported.manager.buffer)
    (folder / "expected.bpte").write_bytes(executorch_bundle(exported))
    write_cases(folder, to_suites(exported.cases, store), by_method=True)


@dataclass(frozen=True)
class CachedModel:
    """An export as files, made once."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "model.pte"

    def weights(self) -> bytes | None:
        """The .ptd file of a model whose weights are not all in the program."""
        file = self.folder / "weights.ptd"
        return file.read_bytes() if file.exists() else None

    def emitted(self) -> Emitted:
        return pickle.loads((self.folder / "emitted.pickle").read_bytes())

    def expected_bundle(self) -> bytes:
        return (self.folder / "expected.bpte").read_bytes()

    def cases(self) -> CasesByMethod:
        saved = torch.load(self.folder / "cases.pt", weights_only=True)
        return {
            method: [ModelCase(inputs, outputs) for inputs, outputs in group]
            for method, group in saved.items()
        }


def cached(name: str, cache: Path) -> CachedModel:
    """Returns the model from `cache`, exported and put there first if it isn't in it."""
    folder = cache / f"{name}-{_cache_key()}"
    make_once(folder, lambda fresh: _save(name, fresh))
    return CachedModel(folder)


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Makes `folder`, which is filled under another name first, unless it is there. One process makes it, and others
    wait for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            fresh = Path(scratch) / folder.name
            fresh.mkdir()
            fill(fresh)
            fresh.rename(folder)


def _save(name: str, folder: Path) -> None:
    exported = export(name)
    if name in MODELS:
        (folder / "model.pte").write_bytes(exported.manager.buffer)
        (folder / "expected.bpte").write_bytes(executorch_bundle(exported))
    exported.manager.write_tensor_data_to_file(str(folder))
    (folder / "emitted.pickle").write_bytes(pickle.dumps(Emitted.of(exported.manager)))
    write_plans(exported.manager, folder, few=name in LARGE_PROGRAMS)
    saved = {
        method: [(case.inputs, case.outputs) for case in group]
        for method, group in exported.cases.items()
    }
    torch.save(saved, folder / "cases.pt")


def _cache_key() -> str:
    """Returns a key that changes with everything that decides an export."""
    here = Path(__file__)
    sources = (here, here.with_name("layouts.py"), _EXAMPLES / "make_example.py")
    versions = map(importlib.metadata.version, ("executorch", "torch", "transformers"))
    parts = [source.read_bytes() for source in sources] + [v.encode() for v in versions]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description="Export a model for `etstream bundle`.")
    parser.add_argument("name", choices=MODELS)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    program = arguments.output / f"{arguments.name}.pte"
    write_for_command(export(arguments.name), program, Store.NPY)


if __name__ == "__main__":
    main()
