# SPDX-License-Identifier: BSD-3-Clause
"""Lowers one exported program by several recipes: the results run, and have their weights once."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import pytest
import torch
from etstream.executorch import (
    RecipeError,
    load_fat,
    register_recipe,
    registered_recipes,
    specialize,
    specialized_preprocess,
)
from executorch.backends.native.partitioner import NativePartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_details import BackendDetails, CompileSpec, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from torch.export import ExportedProgram

INPUTS = (torch.linspace(-1, 1, 128).reshape(2, 64),)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


WEIGHTS = 4 * (64 * 256 + 256 + 256 * 8 + 8)


@pytest.fixture(scope="module")
def exported() -> ExportedProgram:
    return torch.export.export(Model().eval(), INPUTS)


@pytest.fixture(scope="module")
def expected(exported: ExportedProgram) -> torch.Tensor:
    return exported.module()(*INPUTS)


def lowered(exported: ExportedProgram) -> Any:
    return to_edge(exported).to_executorch()


def test_each_payload_runs_with_the_one_copy_of_the_weights(
    exported: ExportedProgram, expected: torch.Tensor, tmp_path: Path
) -> None:
    made = specialize(exported, tmp_path / "model.fat", recipes=["native", "xnnpack"])
    assert sorted(os.listdir(tmp_path)) == ["model.fat", "model.ptd"]
    assert list(made.payloads) == ["native", "xnnpack", "portable"]
    assert min(made.alone.values()) > WEIGHTS > 4 * max(made.payloads.values())
    assert made.weights_size < WEIGHTS + 4096
    assert str(made).splitlines()[-1].split()[1:] == [
        f"{sum(made.alone.values()):,}",
        f"{sum(os.stat(tmp_path / name).st_size for name in os.listdir(tmp_path)):,}",
    ]
    for name in ("xnnpack", "portable"):
        with load_fat(tmp_path / "model.fat", prefer=[name]) as program:
            assert (program.name, program.methods) == (name, ("forward",))
            assert torch.allclose(program.run(INPUTS)[0], expected, atol=1e-5)
    assert etstream.verify(tmp_path / "model.fat")


def test_the_first_payload_that_runs_here_is_taken(
    exported: ExportedProgram, expected: torch.Tensor, tmp_path: Path
) -> None:
    made = specialize(exported, tmp_path / "model.fat", recipes=["native", "xnnpack"])
    container = etstream.FatContainerFile(made.container)
    payloads = {"npu": b"a blob", **{name: container[name] for name in container}}
    etstream.fat(payloads, tmp_path / "more.fat", align=16)
    with load_fat(tmp_path / "more.fat", weights=made.weights, prefer=["gpu", "native"]) as program:
        assert program.name == "xnnpack"
        assert list(program.rejected) == ["native", "npu"]
        assert "another kind" in program.rejected["npu"] or "expected" in program.rejected["npu"]
        assert torch.allclose(program.run(INPUTS)[0], expected, atol=1e-5)
        with pytest.raises(etstream.NotFoundError, match="no method 'backward'; methods: 'forward'"):
            program.run(INPUTS, "backward")
    with pytest.raises(ValueError, match="closed"):
        program.run(INPUTS)


def test_where_no_payload_runs_the_error_says_why_of_each(exported: ExportedProgram, tmp_path: Path) -> None:
    specialize(exported, tmp_path / "model.fat", recipes=["native"], fallback=None)
    etstream.fat({"npu": b"a blob"}, tmp_path / "blob.fat")
    for name, payload in (("model", "native"), ("blob", "npu")):
        with pytest.raises(etstream.UnsupportedError, match=f"no payload can be run here:\n  {payload}: ."):
            load_fat(tmp_path / f"{name}.fat")


def test_without_its_weights_nothing_is_run(exported: ExportedProgram, tmp_path: Path) -> None:
    made = specialize(exported, tmp_path / "model.fat", weights_to=tmp_path / "shared.ptd")
    with pytest.raises(etstream.UnsupportedError, match="portable: "):
        load_fat(made.container)
    assert load_fat(made.container, weights=tmp_path / "shared.ptd").name == "xnnpack"


def test_payloads_are_called_what_the_caller_says(exported: ExportedProgram, tmp_path: Path) -> None:
    made = specialize(
        exported, tmp_path / "model.fat", recipes={"a": lowered, "b": "xnnpack", "portable": "xnnpack"}, fallback="a"
    )
    assert list(made.payloads) == ["b", "portable", "a"]


def test_a_recipe_may_give_a_file_and_external_data(
    exported: ExportedProgram, expected: torch.Tensor, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.pte"
    lowered(exported).save(os.fspath(saved))

    def external(program: ExportedProgram) -> Any:
        return to_edge(program).to_executorch(ExecutorchBackendConfig(external_constants=True))

    made = specialize(exported, tmp_path / "model.fat", recipes={"file": lambda _: saved, "external": external})
    assert made.container_size < WEIGHTS / 4 and made.weights_size < WEIGHTS + 4096
    for name in made.payloads:
        with load_fat(made.container, prefer=[name]) as program:
            assert program.name == name
            assert torch.allclose(program.run(INPUTS)[0], expected, atol=1e-5)


def raising(_: ExportedProgram) -> Any:
    raise KeyError("no such operator")


def writing(program: ExportedProgram) -> Any:
    with torch.no_grad():
        next(iter(program.state_dict.values())).mul_(2)
    return lowered(program)


@pytest.mark.parametrize(
    ("recipe", "reason"), [(raising, "KeyError: 'no such operator'"), (writing, "it has written to a tensor")]
)
def test_a_recipe_that_fails_is_named_and_nothing_is_written(
    recipe: Callable[[ExportedProgram], Any], reason: str, tmp_path: Path
) -> None:
    program = torch.export.export(Model().eval(), INPUTS)
    for name in ("model.fat", "model.ptd"):
        (tmp_path / name).write_bytes(b"as it was")
    with pytest.raises(RecipeError, match=f"recipe 'npu': {reason}") as raised:
        specialize(program, tmp_path / "model.fat", recipes={"xnnpack": "xnnpack", "npu": recipe}, spill=tmp_path)
    assert raised.value.recipe == "npu" and isinstance(raised.value, etstream.Error)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.recipe, str(again)) == ("npu", str(raised.value))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "model.fat": b"as it was",
        "model.ptd": b"as it was",
    }


def test_a_recipe_has_a_graph_of_its_own(exported: ExportedProgram, tmp_path: Path) -> None:
    def spoiling(program: ExportedProgram) -> Any:
        made = lowered(copy.copy(program))
        program.graph_module.graph.erase_node(program.graph_module.graph.output_node())
        return made

    before = str(exported.graph)
    specialize(exported, tmp_path / "model.fat", recipes={"spoiling": spoiling})
    assert str(exported.graph) == before


def test_what_makes_no_sense_is_refused_before_any_recipe_runs(exported: ExportedProgram, tmp_path: Path) -> None:
    output = tmp_path / "model.fat"
    with pytest.raises(etstream.NotFoundError, match="no recipe 'npu'; recipes: 'portable', 'xnnpack'"):
        specialize(exported, output, recipes={"a": raising, "b": "npu"})
    with pytest.raises(etstream.InvalidArgumentError, match="1 to 32 characters"):
        specialize(exported, output, recipes={"é": raising})
    with pytest.raises(etstream.InvalidArgumentError, match="expected one at least"):
        specialize(exported, output, recipes=[], fallback=None)
    with pytest.raises(etstream.InvalidArgumentError, match="both to be"):
        specialize(exported, output, recipes={"a": raising}, weights_to=output)
    with pytest.raises(TypeError, match="recipes: expected names, found 'xnnpack' alone"):
        specialize(exported, output, recipes="xnnpack")
    with pytest.raises(TypeError, match="prefer: expected names, found 'p2' alone"):
        load_fat(output, prefer="p2")
    with pytest.raises(etstream.InvalidArgumentError, match="a recipe 'portable' already"):
        register_recipe("portable", lowered)
    assert registered_recipes()[:4] == ("portable", "xnnpack", "tosa", "native")
    assert list(tmp_path.iterdir()) == []


class SpecializingBackend(BackendDetails):
    """A backend like ExecuTorch's native one: its payload is a container, and its weights are named data."""

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        return specialized_preprocess(edge_program, recipes=[spec.key for spec in compile_specs])


class SpecializingPartitioner(Partitioner):
    def __init__(self, recipes: list[str]) -> None:
        self._spec = DelegationSpec("SpecializingBackend", [CompileSpec(recipe, b"") for recipe in recipes])

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        found = NativePartitioner().partition(exported_program)
        tags = dict.fromkeys(found.partition_tags, self._spec)
        return PartitionResult(tagged_exported_program=found.tagged_exported_program, partition_tags=tags)


def test_a_backend_may_give_it_as_what_it_preprocessed(
    exported: ExportedProgram, expected: torch.Tensor, tmp_path: Path
) -> None:
    edge = to_edge_transform_and_lower(exported, partitioner=[SpecializingPartitioner(["xnnpack"])])
    program = edge.to_executorch()
    (delegate,) = program.executorch_program.backend_delegate_data
    (tmp_path / "delegate.fat").write_bytes(bytes(delegate.data))
    container = etstream.FatContainerFile(tmp_path / "delegate.fat")
    assert list(container) == ["xnnpack", "portable"]
    # The weights are the program's external data, with their layouts.
    program.write_tensor_data_to_file(str(tmp_path))
    assert len(program.buffer) < WEIGHTS / 4
    for name in container:
        with load_fat(tmp_path / "delegate.fat", weights=tmp_path / "weights.ptd", prefer=[name]) as payload:
            assert payload.name == name
            assert torch.allclose(payload.run(INPUTS)[0], expected, atol=1e-5)
