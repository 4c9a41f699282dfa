# SPDX-License-Identifier: BSD-3-Clause
"""Writes ETRecords with etstream in place: they are those of ExecuTorch, and its Inspector reads them."""

from __future__ import annotations

import copy
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from etrecords import entries
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import BundledProgram, Inspector, generate_etrecord
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.exir import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.lowered_backend_module import LoweredBackendModule
from executorch.exir.serde import serialize as serde
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

import etstream
import etstream.executorch

INPUTS = (torch.randn(2, 48),)


@dataclass
class Compiled:
    edge: EdgeProgramManager
    program: ExecutorchProgramManager


def compiled(edge: EdgeProgramManager) -> Compiled:
    return Compiled(copy.deepcopy(edge), edge.to_executorch())


def make_model() -> torch.nn.Module:
    layers = torch.nn.Linear(48, 32), torch.nn.ReLU(), torch.nn.Linear(32, 7)
    return torch.nn.Sequential(*layers).eval()


@pytest.fixture(scope="module")
def portable() -> Compiled:
    return compiled(to_edge(torch.export.export(make_model(), INPUTS)))


@pytest.fixture(scope="module")
def delegated() -> Compiled:
    """Returns two methods whose weights are named data."""
    methods = {name: torch.export.export(make_model(), INPUTS) for name in ("one", "two")}
    return compiled(to_edge_transform_and_lower(methods, partitioner=[XnnpackPartitioner()]))


def same_records(folder: Path, *arguments: Any) -> bool:
    generate_etrecord(folder / "theirs", *arguments)
    with etstream.executorch.install():
        generate_etrecord(folder / "ours", *arguments)
    return entries(folder / "ours") == entries(folder / "theirs")


def test_a_record_of_a_program_is_executorchs(portable: Compiled, tmp_path: Path) -> None:
    assert same_records(tmp_path, portable.edge, portable.program)


def test_a_record_of_delegates_is_executorchs(delegated: Compiled, tmp_path: Path) -> None:
    assert same_records(tmp_path, delegated.edge, delegated.program)


def test_a_record_of_all_that_there_can_be_is_executorchs(portable: Compiled, tmp_path: Path) -> None:
    cases = [MethodTestCase(INPUTS, (make_model()(*INPUTS),))]
    bundle = BundledProgram(portable.program, [MethodTestSuite("forward", cases)])
    extra = {"before": portable.edge.exported_program(), "after": portable.edge}
    assert same_records(tmp_path, portable.edge, bundle, portable.edge.exported_program(), extra)


def test_a_record_goes_into_an_open_file(portable: Compiled, tmp_path: Path) -> None:
    generate_etrecord(tmp_path / "theirs", portable.edge, portable.program)
    file = io.BytesIO()
    with etstream.executorch.install():
        generate_etrecord(file, portable.edge, portable.program)
    (tmp_path / "ours").write_bytes(file.getvalue())
    assert entries(tmp_path / "ours") == entries(tmp_path / "theirs")


def test_named_data_may_lie_elsewhere(
    delegated: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate_etrecord(tmp_path / "theirs", delegated.edge, delegated.program)
    for method in delegated.edge.methods:
        for module in delegated.edge.exported_program(method).graph_module.modules():
            if isinstance(module, LoweredBackendModule):
                store = module.named_data_store_output
                assert store is not None and store.buffers
                lazy = [etstream.executorch.LazyData(data) for data in store.buffers]
                monkeypatch.setattr(store, "buffers", lazy)
    with etstream.executorch.install():
        generate_etrecord(tmp_path / "ours", delegated.edge, delegated.program)
    assert entries(tmp_path / "ours") == entries(tmp_path / "theirs")


def test_threads_write_records_at_once(delegated: Compiled, tmp_path: Path) -> None:
    """Writes records from several threads, which ExecuTorch's own writer does not allow."""
    generate_etrecord(tmp_path / "theirs", delegated.edge, delegated.program)
    files = [tmp_path / str(index) for index in range(8)]
    with etstream.executorch.install(), ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda file: generate_etrecord(file, delegated.edge, delegated.program), files))
    expected = entries(tmp_path / "theirs")
    assert [entries(file) for file in files] == [expected] * len(files)


def test_other_uses_of_the_serializer_are_as_before(portable: Compiled) -> None:
    before = serde.serialize(portable.edge.exported_program())
    with etstream.executorch.install():
        assert serde.serialize(portable.edge.exported_program()) == before


def test_what_cannot_be_pickled_is_said_before_the_entry_is_begun(portable: Compiled, tmp_path: Path) -> None:
    program = copy.copy(portable.edge.exported_program())
    program._constants = {"lock": threading.Lock()}
    with etstream.executorch.install(), pytest.raises(TypeError, match="pickle"):
        generate_etrecord(tmp_path / "record", portable.edge, portable.program, program)
    assert [name for name, *_ in entries(tmp_path / "record")] == ["ETRECORD_V0"]


def test_the_inspector_finds_operators_by_a_record(portable: Compiled, tmp_path: Path) -> None:
    with etstream.executorch.install():
        generate_etrecord(tmp_path / "record", portable.edge, portable.program)
    module = _load_for_executorch_from_buffer(portable.program.buffer, enable_etdump=True)
    module.forward(INPUTS)
    module.write_etdump_result_to_file(str(tmp_path / "etdump"), str(tmp_path / "debug"))
    inspector = Inspector(etdump_path=str(tmp_path / "etdump"), etrecord=str(tmp_path / "record"))
    events = [event for block in inspector.event_blocks for event in block.events]
    operators = {name for event in events for name in event.op_types}
    assert {"aten.addmm.default", "aten.relu.default"} <= operators
