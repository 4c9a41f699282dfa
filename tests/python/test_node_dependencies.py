# SPDX-License-Identifier: BSD-3-Clause
"""What partitioners learn of a graph under low_memory_export(): the same as ever, in less memory."""

from __future__ import annotations

import contextlib
import operator
import random
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from etstream.executorch import low_memory_export
from etstream.executorch._node_dependencies import NodeDependencies
from executorch.exir.backend.canonical_partitioners import group_partitioner
from torch.fx.passes.infra import partitioner
from torch.fx.passes.operator_support import OperatorSupportBase

MIB = 1 << 20
PARTITIONERS = {
    "torch": (partitioner, partitioner.CapabilityBasedPartitioner),
    "executorch": (group_partitioner, group_partitioner.GroupBasedPartitioner),
}


def graph_of(nodes: int, *, reach: int) -> torch.fx.GraphModule:
    """Sums of values among the last `reach` ones, by chance; each third is of a kind that nobody supports."""
    chance = random.Random(nodes)
    graph = torch.fx.Graph()
    values = [graph.placeholder("x")]
    for index in range(nodes):
        a, b = (chance.choice(values[-reach:]) for _ in range(2))
        values.append(graph.call_function(operator.sub if index % 3 == 0 else operator.add, (a, b)))
    graph.output(values[-1])
    return torch.fx.GraphModule(torch.nn.Module(), graph)


class Sums(OperatorSupportBase):
    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        return node.target is operator.add


@pytest.mark.parametrize("kind", PARTITIONERS)
def test_dependencies_are_those_that_the_sets_show(kind: str) -> None:
    module = graph_of(120, reach=9)
    nodes = list(module.graph.nodes)
    sets, bits = PARTITIONERS[kind][0]._DependencyViewer(module), NodeDependencies(module)
    # They are of the graph as it was.
    with module.graph.inserting_after(nodes[3]):
        late = module.graph.call_function(operator.neg, (nodes[3],))
    for name in {"downstreams_of", "upstreams_of"} & set(dir(sets)):
        for node in [*nodes, late]:
            expected, found = getattr(sets, name)(node), getattr(bits, name)(node)
            assert found == expected and set(found) == expected and len(found) == len(expected)
            assert [each in found for each in [*nodes, late]] == [each in expected for each in [*nodes, late]]
    assert bits.downstreams_of(nodes[0]) & {nodes[1], late} == {nodes[1]}


@pytest.mark.parametrize("kind", PARTITIONERS)
def test_partitions_are_those_of_upstream(kind: str) -> None:
    def partitions() -> set[frozenset[str]]:
        made = PARTITIONERS[kind][1](graph_of(150, reach=5), Sums(), allows_single_node_partition=True)
        return {frozenset(node.name for node in each.nodes) for each in made.propose_partitions()}

    expected = partitions()
    with low_memory_export():
        assert partitions() == expected
    assert max(map(len, expected)) > 2 and len(expected) > 2


@pytest.mark.parametrize("kind", PARTITIONERS)
def test_memory_does_not_grow_with_the_square_of_the_nodes(kind: str) -> None:
    module = graph_of(1500, reach=4)

    def peak(context: contextlib.AbstractContextManager[Any]) -> int:
        with context:
            tracemalloc.start()
            try:
                PARTITIONERS[kind][1](module, Sums())
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    assert peak(low_memory_export()) < 4 * MIB
    assert peak(contextlib.nullcontext()) > 48 * MIB
