# SPDX-License-Identifier: BSD-3-Clause
"""Shows that payloads tell what they are, their parts and which named data they use, and that missing data is found."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest
import torch
from command import Etstream
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import VulkanDelegateHeader
from executorch.exir import ExecutorchProgramManager, to_edge_transform_and_lower
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import (
    BackendDetails,
    CompileSpec,
    ExportedProgram,
    PreprocessResult,
)
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data

WEIGHT = b"\1" * 24
BLOCK_KEY = hashlib.sha256(WEIGHT).hexdigest()


def block(name: str, data: bytes, is_external: bool = False) -> bytes:
    header = struct.pack("<16sIB11s", name.encode(), len(data), is_external, b"")
    return header + data + bytes(-len(data) % 16)


def ethos_u_payload() -> bytes:
    blocks = [block("vela_bin_stream", b""), block("cmd_data", b"COP1"), block("weight_data", BLOCK_KEY.encode(), True)]
    return b"".join([*blocks, block("scratch_size", b"\0\1\0\0"), block("vela_end_stream", b"")])


PAYLOAD = b""
NAMED: dict[str, bytes] = {}


def preprocessed(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
    store = NamedDataStore()
    for key, value in NAMED.items():
        store.add_named_data(key, value, external_tag="data")
    return PreprocessResult(PAYLOAD, data_store_output=store.get_named_data_store_output())


EthosUBackend = type("EthosUBackend", (BackendDetails,), {"preprocess": staticmethod(preprocessed)})


class Everything(Partitioner):
    """A partitioner that puts all calls in one delegate."""

    def __init__(self, backend: str) -> None:
        self.delegation_spec = DelegationSpec(backend, [])

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        for node in exported_program.graph.nodes:
            if node.op == "call_function":
                node.meta["delegation_tag"] = "all"
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, {"all": self.delegation_spec})


def exported(partitioner: Partitioner) -> ExecutorchProgramManager:
    torch.manual_seed(0)
    graph = torch.export.export(torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),))
    return to_edge_transform_and_lower(graph, partitioner=[partitioner]).to_executorch()


def saved(manager: ExecutorchProgramManager, folder: Path) -> list[Path]:
    """Returns the program, and the files of its external data."""
    (folder / "model.pte").write_bytes(manager.buffer)
    manager.write_tensor_data_to_file(str(folder))
    return [folder / "model.pte", *sorted(folder.glob("*.ptd"))]


def test_named_data_is_told_by_the_payload(
    etstream: Etstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, payload = "EthosUBackend", ethos_u_payload()
    monkeypatch.setitem(globals(), "PAYLOAD", payload)
    monkeypatch.setitem(globals(), "NAMED", {BLOCK_KEY: WEIGHT})
    program, *weights = saved(exported(Everything(backend)), tmp_path)
    (found,) = etstream.inspect(program)["payloads"]
    assert (found["method"], found["delegate"], found["backend"]) == ("forward", 0, backend)
    assert (found["format"], found["keys"], found["size"]) == ("a stream of blocks (vela_bin_stream)", 1, len(payload))
    assert etstream.extract(program, "forward/delegate 0") == payload
    assert etstream.verify(program).errors == []
    assert etstream.verify(program, *weights).errors == []
    assert etstream.verify(program, *weights).warnings == []
    # The key is missing.
    monkeypatch.setitem(globals(), "NAMED", {"other": b"x"})
    (tmp_path / "fewer").mkdir()
    _, *other = saved(exported(Everything(backend)), tmp_path / "fewer")
    found = etstream.verify(program, *other)
    assert any(f"expected named data '{BLOCK_KEY}'" in error for error in found.errors), found
    assert any("key 'other'" in warning for warning in found.warnings), found
    # The payload breaks off.
    monkeypatch.setitem(globals(), "PAYLOAD", payload[:-32])
    (tmp_path / "cut").mkdir()
    cut, *_ = saved(exported(Everything(backend)), tmp_path / "cut")
    errors = etstream.verify(cut).errors
    assert len(errors) == 1 and f"delegate 0 ({backend})" in errors[0], errors


def test_vulkan_s_graph_tells_its_parts_and_named_data(etstream: Etstream, tmp_path: Path) -> None:
    program, *weights = saved(exported(VulkanPartitioner()), tmp_path)
    assert weights == []
    (found,) = etstream.inspect(program)["payloads"]
    assert (found["backend"], found["format"]) == ("VulkanBackend", "a graph (VH00)")
    assert found["keys"] > 0
    header = VulkanDelegateHeader.from_bytes(etstream.extract(program, "forward/delegate 0")[:30])
    assert [(each["name"], each["offset"], each["size"]) for each in found["parts"]] == [
        ("graph", header.flatbuffer_offset, header.flatbuffer_size),
        ("data", header.bytes_offset, header.bytes_size),
    ]
    assert etstream.extract(program, "forward/delegate 0/graph")[4:8] == b"VK00"
    assert etstream.verify(program).errors == []
    etstream.pte(program, tmp_path / "thin.pte", "--constants-to", str(tmp_path / "w.ptd"))
    assert etstream.verify(tmp_path / "thin.pte", tmp_path / "w.ptd").errors == []
    outcome = etstream.attempt("verify", tmp_path / "thin.pte")
    assert "to come from a tensor data file" in outcome.stdout.decode(), outcome


def test_a_payload_that_begins_in_another_way_is_a_warning(
    etstream: Etstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PAYLOAD", b"something else")
    program, *_ = saved(exported(Everything("EthosUBackend")), tmp_path)
    found = etstream.verify(program)
    assert found.errors == []
    expected = "method 'forward', delegate 0 (EthosUBackend): expected data that begins with vela_bin_stream"
    assert [warning for warning in found.warnings if expected in warning]
    assert "format" not in etstream.inspect(program)["payloads"][0]
