# SPDX-License-Identifier: BSD-3-Clause
"""Shows that `inspect` and `diff` show what ExecuTorch's own deserializer finds in the same files."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from command import Etstream
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeProgramManager, schema, to_edge, to_edge_transform_and_lower
from executorch.exir._serialize._program import PTEFile, deserialize_pte_binary
from models import MODELS, CachedModel

ModelByName = Callable[[str], CachedModel]
DOT_ID = r'"(?:[^"\\]|\\.)*"|[a-zA-Z_]\w*'
DOT_ATTRIBUTES = rf"\[(?:{DOT_ID})=(?:{DOT_ID})(?:, (?:{DOT_ID})=(?:{DOT_ID}))*\]"
DOT_STATEMENT = re.compile(rf"  (\w+)(?: -> (\w+))?(?: {DOT_ATTRIBUTES})?;")


class TwoWays(torch.nn.Module):
    """A model for delegates of several outputs, with views, a cut and a concatenation around them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = self.a(x), self.b(x).relu()
        sorted_right, _ = torch.sort(right.view(2, 16))
        both = torch.cat([left.view(2, 16), sorted_right])
        flat = both.view(8, 8)
        first, second = self.a(flat), self.b(flat)
        one, other = torch.split(second, 4)
        return first + other.sum(), self.last(one)

    def last(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Branch(TwoWays):
    """The same model with a branch at its end."""

    def last(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def portable() -> EdgeProgramManager:
    return to_edge(torch.export.export(Branch().eval(), (torch.randn(4, 8),)))


def xnnpack() -> EdgeProgramManager:
    graph = torch.export.export(TwoWays().eval(), (torch.randn(4, 8),))
    return to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()])


@pytest.fixture(scope="module", params=[portable, xnnpack])
def two_ways(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("two_ways") / "model.pte"
    program.write_bytes(request.param().to_executorch().buffer)
    return program


@pytest.fixture(scope="module", params=MODELS)
def program(request: pytest.FixtureRequest, model: ModelByName) -> Path:
    return model(request.param).program


def deserialized(program: Path) -> PTEFile:
    return deserialize_pte_binary(program.read_bytes())


def full_name(operator: schema.Operator) -> str:
    return f"{operator.name}.{operator.overload}" if operator.overload else operator.name


def instructions_of(plan: schema.ExecutionPlan) -> list[Any]:
    return [one.instr_args for chain in plan.chains for one in chain.instructions]


def graphs_of(program: Path, etstream: Etstream) -> Iterator[tuple[schema.ExecutionPlan, Any]]:
    for plan in deserialized(program).program.execution_plan:
        yield plan, etstream.graph(program, plan.name)


def check_values(plan: schema.ExecutionPlan, graph: Any) -> None:
    assert graph["inputs"] == plan.inputs
    assert graph["outputs"] == plan.outputs
    assert len(graph["values"]) == len(plan.values)
    for ours, theirs in zip(graph["values"], (value.val for value in plan.values), strict=True):
        assert ours["kind"] == type(theirs).__name__
        if isinstance(theirs, schema.Tensor):
            assert ours["sizes"] == theirs.sizes
            assert ours["dim_order"] == list(theirs.dim_order)
            assert ours.get("data_index", 0) == theirs.data_buffer_idx
            planned = theirs.allocation_info
            assert ours.get("memory_id", 0) == (planned.memory_id if planned else 0)
            assert ours.get("memory_offset", 0) == (planned.memory_offset_low if planned else 0)
            constant = theirs.data_buffer_idx > 0 and planned is None
            assert (ours["storage"] == "constant") == constant
        elif isinstance(theirs, (schema.IntList, schema.TensorList, schema.OptionalTensorList)):
            assert ours["items"] == theirs.items
        elif dataclasses.fields(theirs):
            (field,) = dataclasses.fields(theirs)
            found = ours.get("value", ours.get("items"))
            assert type(getattr(theirs, field.name))(found) == getattr(theirs, field.name)


def check_calls(plan: schema.ExecutionPlan, graph: Any) -> None:
    instructions = instructions_of(plan)
    assert len(graph["calls"]) == len(instructions)
    for ours, theirs in zip(graph["calls"], instructions, strict=True):
        if isinstance(theirs, schema.KernelCall):
            assert ours["name"] == full_name(plan.operators[theirs.op_index])
            assert ours["args"] == theirs.args
        elif isinstance(theirs, schema.DelegateCall):
            assert ours["name"] == f"delegate {plan.delegates[theirs.delegate_index].id}"
            assert ours["args"] == theirs.args
        elif isinstance(theirs, schema.MoveCall):
            assert (ours["inputs"], ours["outputs"]) == ([theirs.move_from], [theirs.move_to])
        elif isinstance(theirs, schema.JumpFalseCall):
            assert ours["destination"] == theirs.destination_instruction
            assert ours["inputs"] == [theirs.cond_value_index]
        else:
            assert ours["inputs"] == [theirs.value_index]


def check_outputs_by_schema(plan: schema.ExecutionPlan, graph: Any) -> int:
    """Checks calls against the operators' own schemas, which a program does not have. Returns how many there were."""
    checked = 0
    for call in graph["calls"]:
        namespace, _, rest = call["name"].partition("::")
        name, _, overload = rest.partition(".")
        if namespace != "aten" or "operator" not in call:
            continue
        arguments = getattr(getattr(torch.ops.aten, name), overload or "default")._schema.arguments
        outs = [place for place, argument in enumerate(arguments) if argument.is_out]
        expected = {call["args"][place] for place in outs}
        lists = {call["args"][-1]} - expected
        assert set(call["outputs"]) - lists == expected, call
        assert call["inputs"] == [
            arg for place, arg in enumerate(call["args"][: len(arguments)]) if place not in outs
        ]
        checked += 1
    return checked


def check_every_value_comes_from_somewhere(graph: Any) -> None:
    for index, value in enumerate(graph["values"]):
        if value["kind"] == "Tensor" and value["storage"] == "planned" and value["users"]:
            assert value["input"] or value["producers"] or "view_of" in value, (index, value)
        for call in value["producers"]:
            assert call < len(graph["calls"])
    for index in graph["outputs"]:
        value = graph["values"][index]
        made = value["producers"] or value["input"] or "view_of" in value
        assert made or value.get("storage") != "planned", (index, value)


def test_graphs_have_the_values_and_calls_that_executorch_finds(
    program: Path, etstream: Etstream
) -> None:
    for plan, graph in graphs_of(program, etstream):
        check_values(plan, graph)
        check_calls(plan, graph)
        check_every_value_comes_from_somewhere(graph)
        is_delegated = any("delegate" in call for call in graph["calls"])
        assert check_outputs_by_schema(plan, graph) > 0 or is_delegated


def test_outputs_views_lists_and_branches_are_told(two_ways: Path, etstream: Etstream) -> None:
    ((plan, graph),) = graphs_of(two_ways, etstream)
    check_values(plan, graph)
    check_calls(plan, graph)
    check_outputs_by_schema(plan, graph)
    check_every_value_comes_from_somewhere(graph)
    assert any(len(call["outputs"]) > 2 for call in graph["calls"])  # a sort has two outputs and their list
    delegates = [call for call in graph["calls"] if "delegate" in call]
    for call in delegates:
        assert call["inputs"] and call["outputs"]
        assert call["inputs"] + call["outputs"] == call["args"]
    if delegates:
        assert any(len(call["outputs"]) > 1 for call in delegates)
    else:
        assert any("view_of" in value for value in graph["values"])
        assert any(call["name"] == "jump if false" for call in graph["calls"])


def test_planned_memory_is_written_before_it_is_read(two_ways: Path, etstream: Etstream) -> None:
    ((_, graph),) = graphs_of(two_ways, etstream)
    written: set[int] = set(graph["inputs"])
    for call in graph["calls"]:
        for value in call["inputs"]:
            described = graph["values"][value]
            if described["kind"] == "Tensor" and described["storage"] == "planned":
                assert value in written or "view_of" in described, call
        for value in call["outputs"]:
            written.update([value, *graph["values"][value].get("items", [])])


def test_dot_parses_and_has_every_call(program: Path, etstream: Etstream) -> None:
    for plan, graph in graphs_of(program, etstream):
        first, setting, *lines, last = etstream.dot(program, plan.name).splitlines()
        assert (first, last) == (f'digraph "{plan.name}" {{', "}")
        assert setting == '  node [fontname="monospace"];'
        statements = [DOT_STATEMENT.fullmatch(line) for line in lines]
        assert all(statements), [line for line in lines if not DOT_STATEMENT.fullmatch(line)]
        nodes = {one[1] for one in statements if one and not one[2]}
        edges = {(one[1], one[2]) for one in statements if one and one[2]}
        assert {f"c{index}" for index in range(len(graph["calls"]))} <= nodes
        assert {end for edge in edges for end in edge} <= nodes
        for index, call in enumerate(graph["calls"]):
            for value in call["outputs"]:
                assert (f"c{index}", f"v{value}") in edges or graph["values"][value].get("items")


def test_summary_counts_what_executorch_finds(program: Path, etstream: Etstream) -> None:
    theirs = deserialized(program)
    summary = etstream.inspect(program)["program"]
    for ours, plan in zip(summary["methods"], theirs.program.execution_plan, strict=True):
        kernels = [one for one in instructions_of(plan) if isinstance(one, schema.KernelCall)]
        counts = Counter(full_name(plan.operators[kernel.op_index]) for kernel in kernels)
        assert {one["name"]: one["calls"] for one in ours["operators"]} == counts
        assert ours["instructions"] == len(instructions_of(plan))
        assert [one["size"] for one in ours["memories"]] == plan.non_const_buffer_sizes[1:]
        assert [one["backend"] for one in ours["delegates"]] == [one.id for one in plan.delegates]
        data = [
            theirs.program.backend_delegate_data[one.processed.index].data for one in plan.delegates
        ]
        assert [one["size"] for one in ours["delegates"]] == [len(one) for one in data]
        tensors = [value.val for value in plan.values if isinstance(value.val, schema.Tensor)]
        assert len(ours["tensors"]) == len(tensors)


def test_diff_tells_another_layout_from_another_weight(
    program: Path, etstream: Etstream, tmp_path: Path
) -> None:
    other = tmp_path / "other.pte"
    etstream.pte(program, other, "--segment-alignment", "4096", "--constant-tensor-alignment", "64")
    code, found = etstream.diff(program, program)
    assert (code, found["same_bytes"], found["differences"]) == (0, True, [])
    code, found = etstream.diff(program, other)
    assert (code, found["same_bytes"], found["same_content"]) == (1, False, True)
    assert {one["kind"] for one in found["differences"]} == {"layout"}
    changed = bytearray(program.read_bytes())
    changed[-1] ^= 1
    other.write_bytes(changed)
    code, found = etstream.diff(program, other)
    assert (code, found["same_content"]) == (1, False)
    (difference,) = found["differences"]
    assert "which differ from byte" in difference["a"]
