# SPDX-License-Identifier: BSD-3-Clause
"""Programs that get the weights of another checkpoint are those that an export with these weights gives."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from command import Etstream, assert_same_bytes
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import (
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from safetensors.torch import load_file, save_file
from torch import nn
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup

WIDTH, HEADS, LENGTH = 64, 4, 8


class Encoder(nn.Module):
    """A layer of an encoder like BERT's."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(96, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.view(1, LENGTH, HEADS, -1).transpose(1, 2)

        x = self.words(tokens) + self.positions(torch.arange(LENGTH))
        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        attention = torch.softmax(query @ key.transpose(2, 3) / (WIDTH // HEADS) ** 0.5, -1)
        x = self.norm(x + self.output((attention @ value).transpose(1, 2).reshape(1, LENGTH, WIDTH)))
        return self.last_norm(x + self.down(nn.functional.gelu(self.up(x))))


TOKENS = (torch.arange(LENGTH).reshape(1, LENGTH),)


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64, bias=False), nn.Linear(64, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


VECTOR = (torch.linspace(-1, 1, 64).reshape(1, 64),)


class Twins(nn.Module):
    """Two layers that may have equal weights."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.right(torch.relu(self.left(x)))


class Images(nn.Module):
    """Convolutions of each kind, with batch norms that are folded, and one that becomes a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.depthwise, self.depthwise_norm = nn.Conv2d(16, 16, 3, groups=16), nn.BatchNorm2d(16, eps=1e-3)
        self.grouped, self.lone_norm = nn.Conv2d(16, 24, 3, padding=1, groups=4), nn.BatchNorm2d(24)
        self.up, self.up_norm = nn.ConvTranspose2d(24, 8, 2, stride=2), nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        x = torch.relu(self.depthwise_norm(self.depthwise(x)))
        x = self.lone_norm(torch.relu(self.grouped(x)))
        x = torch.relu(self.up_norm(self.up(x)))
        return self.linear(x.mean((2, 3)))


IMAGE = (torch.linspace(-1, 1, 3 * 8 * 8).reshape(1, 3, 8, 8),)


def filled(model: nn.Module, seed: int) -> nn.Module:
    """Gives each tensor random values, like those of a trained network."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            continue
        values = torch.randn(tensor.shape, generator=generator)
        if name.endswith("running_var"):
            values = 0.5 + values.abs()
        elif tensor.dim() < 2:
            values = 0.1 * values + (1 if name.endswith("weight") else 0)
        tensor.copy_(values)
    return model.eval()


def portable(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExecutorchProgramManager:
    return to_edge(torch.export.export(model, inputs)).to_executorch()


def xnnpack(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExecutorchProgramManager:
    exported = torch.export.export(model, inputs)
    return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()


def quantized(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExecutorchProgramManager:
    quantize_(model, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))
    exported = torch.export.export(model, inputs)
    partitioners = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
    return to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch()


def portable_bf16(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExecutorchProgramManager:
    return portable(model.to(torch.bfloat16), inputs)


def with_external_constants(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExecutorchProgramManager:
    edge = to_edge(torch.export.export(model, inputs))
    return edge.to_executorch(ExecutorchBackendConfig(external_constants=True))


Recipe = Callable[[nn.Module, tuple[torch.Tensor, ...]], ExecutorchProgramManager]
EXPORTS: dict[str, tuple[type[nn.Module], tuple[torch.Tensor, ...], Recipe]] = {
    "portable": (Encoder, TOKENS, portable),
    "portable bf16": (Encoder, TOKENS, portable_bf16),
    "xnnpack": (Encoder, TOKENS, xnnpack),
    "8da4w": (Perceptron, VECTOR, quantized),
    "convolutions": (Images, IMAGE, xnnpack),
    "external constants": (Encoder, TOKENS, with_external_constants),
}
OLD, NEW = 0, 1


@dataclass(frozen=True)
class Export:
    """An export, and the checkpoint that it was made of."""

    program: Path
    weights: Path | None
    checkpoint: Path


def export(folder: Path, model: nn.Module, inputs: tuple[torch.Tensor, ...], recipe: Recipe) -> Export:
    """Exports the model to a new folder."""
    folder.mkdir()
    save_file(model.state_dict(), folder / "model.safetensors")
    with torch.no_grad():
        manager = recipe(model, inputs)
    (folder / "model.pte").write_bytes(manager.buffer)
    manager.write_tensor_data_to_file(str(folder))
    return Export(folder / "model.pte", next(folder.glob("*.ptd"), None), folder / "model.safetensors")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Export]:
    """Returns a function that returns the export of this name with the weights of a seed, made at its first use."""
    folder = tmp_path_factory.mktemp("exports")

    @functools.cache
    def made(name: str, seed: int) -> Export:
        model, inputs, recipe = EXPORTS[name]
        return export(folder / f"{name} {seed}", filled(model(), seed), inputs, recipe)

    return made


def reweight(etstream: Etstream, old: Export, now: Path, folder: Path) -> Export:
    """Writes files with the weights of the checkpoint `now` to the folder."""
    program, weights = folder / "reweighted.pte", folder / "reweighted.ptd"
    files = [old.program, *([old.weights] if old.weights else [])]
    outputs = ["-o", program, *(["--weights-to", weights] if old.weights else [])]
    outcome = etstream.attempt("reweight", *files, "--was", old.checkpoint, "--now", now, *outputs, "--no-sync")
    assert outcome.code == 0, outcome
    return Export(program, weights if old.weights else None, now)


def assert_same_files(ours: Export, executorchs: Export, what: str) -> None:
    assert_same_bytes(ours.program.read_bytes(), executorchs.program.read_bytes(), what)
    assert (ours.weights is None) == (executorchs.weights is None)
    if ours.weights and executorchs.weights:
        assert_same_bytes(ours.weights.read_bytes(), executorchs.weights.read_bytes(), f"{what}: weights")


@pytest.mark.parametrize("name", EXPORTS)
def test_reweighted_files_are_those_of_an_export_with_the_new_weights(
    name: str, exported: Callable[[str, int], Export], etstream: Etstream, tmp_path: Path
) -> None:
    old, new = exported(name, OLD), exported(name, NEW)
    reweighted = reweight(etstream, old, new.checkpoint, tmp_path)
    assert_same_files(reweighted, new, name)
    back = tmp_path / "back"
    back.mkdir()
    assert_same_files(reweight(etstream, reweighted, old.checkpoint, back), old, f"{name}, and back")


@pytest.mark.parametrize("name", ["portable", "xnnpack", "8da4w"])
def test_so_are_those_whose_constants_were_moved_out(
    name: str, exported: Callable[[str, int], Export], etstream: Etstream, tmp_path: Path
) -> None:
    def moved_out(seed: int) -> Export:
        whole = exported(name, seed)
        program, weights = tmp_path / f"{seed}.pte", tmp_path / f"{seed}.ptd"
        etstream.pte(whole.program, program, "--constants-to", str(weights))
        return Export(program, weights, whole.checkpoint)

    new = moved_out(NEW)
    assert_same_files(reweight(etstream, moved_out(OLD), new.checkpoint, tmp_path), new, name)


def test_checkpoints_may_have_other_types_than_the_program(
    exported: Callable[[str, int], Export], etstream: Etstream, tmp_path: Path
) -> None:
    def halved(seed: int) -> Path:
        path, whole = tmp_path / f"{seed}.safetensors", load_file(exported("portable", seed).checkpoint)
        save_file({key: value.bfloat16() for key, value in whole.items()}, path)
        return path

    old, new = exported("portable bf16", OLD), exported("portable bf16", NEW)
    for was, now in ((old.checkpoint, halved(NEW)), (halved(OLD), halved(NEW)), (halved(OLD), new.checkpoint)):
        reweighted = reweight(etstream, Export(old.program, None, was), now, tmp_path)
        assert_same_files(reweighted, new, f"{was.name}, {now.name}")


@pytest.mark.parametrize("name", EXPORTS)
def test_each_payload_is_explained_by_the_tensors_of_the_checkpoint(
    name: str, exported: Callable[[str, int], Export], etstream: Etstream
) -> None:
    old = exported(name, OLD)
    files = [old.program, *([old.weights] if old.weights else [])]
    outcome = etstream.attempt("explain", *files, "--by", old.checkpoint, "--json")
    assert outcome.code == 0, outcome
    origins = json.loads(outcome.stdout)
    assert origins["explained"]
    assert all(tensor.endswith(".num_batches_tracked") for tensor in origins["unused"]), origins["unused"]
    other = etstream.attempt("explain", *files, "--by", exported(name, NEW).checkpoint, "--json")
    assert other.code == 1 and not json.loads(other.stdout)["explained"]


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}
YARN = {"factor": 4.0, "original_max_position_embeddings": 2048}
ROPES: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (64, {"rope_theta": 10000.0}),
    "plain, with heads of 40": (40, {"rope_theta": 50000.0}),
    "plain, with heads of 112": (112, {"rope_theta": 100000.0}),
    "linear": (64, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0}),
    "dynamic": (128, {"rope_type": "dynamic", "rope_theta": 1000000.0, "factor": 2.5}),
    "llama3": (64, {"rope_type": "llama3", "rope_theta": 10000.0, **LLAMA3}),
    "llama3, with heads of 128": (128, {"rope_type": "llama3", "rope_theta": 200000.0, **LLAMA3, "factor": 32.0}),
    "yarn": (128, {"rope_type": "yarn", "rope_theta": 1000000.0, **YARN}),
    "yarn, not truncated": (64, {"rope_type": "yarn", "rope_theta": 150000.0, **YARN, "truncate": False}),
    "longrope": (
        32,
        {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1 + i / 7 for i in range(16)],
            "long_factor": [2.0 + i for i in range(16)],
            "original_max_position_embeddings": 2048,
        },
    ),
}


def llama_config(name: str) -> transformers.LlamaConfig:
    head, rope = ROPES[name]
    return transformers.LlamaConfig(
        hidden_size=head,
        intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=head,
        vocab_size=96,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", **rope},
    )


class Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(tokens, use_cache=False, return_dict=True).logits
        return logits


def llama(folder: Path, rope: str, seed: int, recipe: Recipe) -> Export:
    """Exports a Llama of transformers. The checkpoint is its folder, with config.json."""
    model = transformers.LlamaForCausalLM(llama_config(rope))
    filled(model, seed)
    model.save_pretrained(folder)
    with torch.no_grad():
        manager = recipe(Logits(model), TOKENS)
    (folder / "model.pte").write_bytes(manager.buffer)
    return Export(folder / "model.pte", None, folder)


@pytest.mark.parametrize("recipe", [portable, xnnpack])
def test_a_llama_of_transformers_gets_the_weights_and_the_frequencies_of_another(
    recipe: Recipe, etstream: Etstream, tmp_path: Path
) -> None:
    old = llama(tmp_path / "old", "plain", OLD, recipe)
    assert_same_files(reweight(etstream, old, old.checkpoint, tmp_path), old, "the same weights")
    new = llama(tmp_path / "new", "llama3", NEW, recipe)
    assert_same_files(reweight(etstream, old, new.checkpoint, tmp_path), new, "other weights and frequencies")
    # The weights alone have no config: the frequencies stay, and are known by their bytes.
    (old.checkpoint / "config.json").unlink()
    (new.checkpoint / "config.json").unlink()
    same_rope = llama(tmp_path / "same rope", "plain", NEW, recipe)
    assert_same_files(reweight(etstream, old, new.checkpoint, tmp_path), same_rope, "other weights")


class Angles(nn.Module):
    """The buffers that models of transformers compute, one of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(llama_config(name)) for name in ROPES
        )

    def forward(self, position: torch.Tensor) -> list[torch.Tensor]:
        return [position * table.inv_freq for table in self.tables]


def test_each_kind_of_frequencies_is_explained_by_its_config_alone(etstream: Etstream, tmp_path: Path) -> None:
    program = tmp_path / "angles.pte"
    program.write_bytes(portable(Angles(), (torch.ones(1),)).buffer)
    for name in ROPES:
        folder = tmp_path / name
        llama_config(name).save_pretrained(folder)
        save_file({"unused": torch.zeros(1)}, folder / "model.safetensors")
        outcome = etstream.attempt("explain", program, "--by", folder, "--json")
        found = [bool(each["tensors"]) for each in json.loads(outcome.stdout)["payloads"]]
        assert found == [name == other for other in ROPES], (name, outcome)


def without(tensors: dict[str, torch.Tensor]) -> None:
    del tensors["norm.weight"]


def of_another_shape(tensors: dict[str, torch.Tensor]) -> None:
    tensors["norm.weight"] = tensors["norm.weight"][:32].clone()


def of_another_kind(tensors: dict[str, torch.Tensor]) -> None:
    tensors["norm.weight"] = tensors["norm.weight"].to(torch.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without, "expected a tensor 'norm.weight' as in"),
        (of_another_shape, r"tensor 'norm.weight': expected float32 \[64\] as in .*, found float32 \[32\]"),
        (of_another_kind, r"tensor 'norm.weight': expected float32 \[64\], found int32 \[64\]"),
    ],
)
def test_a_checkpoint_of_another_network_is_refused(
    change: Callable[[dict[str, torch.Tensor]], None],
    message: str,
    exported: Callable[[str, int], Export],
    etstream: Etstream,
    tmp_path: Path,
) -> None:
    old, now = exported("portable", OLD), tmp_path / "now.safetensors"
    tensors = load_file(exported("portable", NEW).checkpoint)
    change(tensors)
    save_file(tensors, now)
    assert_refused(etstream, old, now, tmp_path, f"{re.escape(str(now))}: {message}")


def assert_refused(etstream: Etstream, old: Export, now: Path, folder: Path, message: str) -> None:
    """Checks that the program does not get the weights of `now`, for the reason in the message."""
    output = folder / "refused.pte"
    outcome = etstream.attempt("reweight", old.program, "--was", old.checkpoint, "--now", now, "-o", output)
    assert outcome.code == 1
    assert re.search(message, outcome.stderr), outcome.stderr
    assert not output.exists()


@pytest.mark.parametrize("name", ["portable", "xnnpack", "8da4w"])
def test_a_program_of_another_checkpoint_is_refused(
    name: str, exported: Callable[[str, int], Export], etstream: Etstream, tmp_path: Path
) -> None:
    old, new = exported(name, OLD), exported(name, NEW)
    mistaken = Export(old.program, None, new.checkpoint)
    message = f"{re.escape(str(new.checkpoint))}: expected tensors that give .*, found none that give its bytes"
    assert_refused(etstream, mistaken, new.checkpoint, tmp_path, message)


def related(model: nn.Module) -> nn.Module:
    """Makes some tensors equal, negated or permuted ones of others of their shape."""
    choose = random.Random(0)
    by_shape: dict[torch.Size, list[torch.Tensor]] = {}
    for name, tensor in model.state_dict().items():
        others = by_shape.setdefault(tensor.shape, [])
        change = choose.choice([torch.clone, torch.neg, lambda x: x.flip(0), lambda x: x.transpose(0, -1)])
        made = change(choose.choice(others)) if others and choose.random() < 0.6 else tensor
        if tensor.is_floating_point() and made.shape == tensor.shape:
            tensor.copy_(made.abs() if name.endswith("running_var") else made.clone())
            others.append(tensor)
    return model


@pytest.mark.parametrize("name", EXPORTS)
def test_tensors_that_have_been_related_are_right_or_refused(
    name: str, exported: Callable[[str, int], Export], etstream: Etstream, tmp_path: Path
) -> None:
    model, inputs, recipe = EXPORTS[name]
    old, new = (export(tmp_path / str(i), related(filled(model(), i)), inputs, recipe) for i in (OLD, NEW))
    assert_same_files(reweight(etstream, old, new.checkpoint, tmp_path), new, "related in both")
    other, outputs = exported(name, NEW), ["-o", tmp_path / "other.pte", "--weights-to", tmp_path / "other.ptd"]
    files = [old.program, *([old.weights] if old.weights else [])]
    checkpoints = ["--was", old.checkpoint, "--now", other.checkpoint]
    outcome = etstream.attempt("reweight", *files, *checkpoints, *outputs[: 2 * len(files)])
    if outcome.code == 0:
        program, weights = tmp_path / "other.pte", tmp_path / "other.ptd"
        assert_same_files(Export(program, weights if old.weights else None, other.checkpoint), other, name)
    else:
        assert "which were equal and differ now" in outcome.stderr, outcome.stderr


@pytest.mark.parametrize("recipe", [portable, xnnpack, quantized])
def test_tensors_that_are_equal_in_only_one_of_the_checkpoints_are_refused(
    recipe: Recipe, etstream: Etstream, tmp_path: Path
) -> None:
    equal, different = filled(Twins(), OLD), filled(Twins(), NEW)
    equal.load_state_dict({name: equal.state_dict()["left.weight"] for name in equal.state_dict()})
    old = export(tmp_path / "equal", equal, VECTOR, recipe)
    new = export(tmp_path / "different", different, VECTOR, recipe)
    message = "may be '(left|right).weight'.* or '(left|right).weight'.*, which were equal and differ now"
    assert_refused(etstream, old, new.checkpoint, tmp_path, message)
    if recipe is not portable:  # constants without names may come twice
        assert_refused(etstream, new, old.checkpoint, tmp_path, "found the same bytes for both")
