# SPDX-License-Identifier: BSD-3-Clause
"""Exports under low_memory_export(): the same files, and memory that does not grow with the weights."""

from __future__ import annotations

import contextlib
import copy
import filecmp
import gc
import hashlib
import io
import json
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import etstream
import pytest
import torch
from etstream.executorch import LazyData, install, low_memory_export
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.xnnpack.operators import node_visitor
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import (
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir._serialize._named_data_store import NamedDataStore, NamedDataStoreOutput
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.emit import _emitter
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from safetensors.torch import load_file, save_file
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup

MIB = 1 << 20
PHASES = Path(__file__).with_name("export_in_phases.py")


def in_phases(mode: str, folder: Path) -> dict[str, dict[str, int]]:
    """Runs in processes of their own: what is above the imports of this one would say nothing."""
    command = [sys.executable, str(PHASES), mode, str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in ("low", "upstream")}
    generator = torch.Generator().manual_seed(1)
    shapes = {"weight": (2048, 2048), "bias": (2048,)}
    weights = {
        f"{layer}.{name}": torch.randn(shape, generator=generator)
        for layer in range(10)
        for name, shape in shapes.items()
    }
    save_file(weights, folders["low"] / "stack.safetensors")
    (folders["upstream"] / "stack.safetensors").symlink_to(folders["low"] / "stack.safetensors")
    return {mode: (folder, in_phases(mode, folder)) for mode, folder in folders.items()}


MOST = {
    "portable": (128 * MIB, 256 * MIB),
    "xnnpack": (256 * MIB, 256 * MIB),
    "vulkan": (128 * MIB, 256 * MIB),
}
"""Anonymous and resident bytes above the imports."""


@pytest.mark.parametrize("target", MOST)
def test_an_export_of_160_mib_stays_within_the_limits_that_upstream_breaks(
    measured: dict[str, Any], target: str
) -> None:
    def within(mode: str) -> tuple[bool, bool]:
        peak, (anonymous, resident) = measured[mode][1][target], MOST[target]
        return peak["anonymous"] <= anonymous, peak["resident"] <= resident

    assert within("low") == (True, True), measured
    assert within("upstream") == (False, False), measured
    low, upstream = (measured[mode][0] / f"{target}.pte" for mode in ("low", "upstream"))
    assert filecmp.cmp(low, upstream, shallow=False)


def test_pages_that_are_touched_otherwise_are_let_go_of(measured: dict[str, Any]) -> None:
    assert measured["low"][1]["touch"]["resident"] <= 160 * MIB, measured
    assert measured["upstream"][1]["touch"]["resident"] > 160 * MIB, measured


class EveryKind(torch.nn.Module):
    """Weights, shared ones too, constants, and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(16, 128, 3)
        self.linear = torch.nn.Linear(128, 512)
        self.same = torch.nn.Linear(128, 512)
        self.same.weight = self.linear.weight
        self.register_buffer("factor", torch.randn(128, 128))
        self.register_buffer("state", torch.ones(100, 100))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.convolution(x).mean((2, 3)) @ self.factor
        self.state.add_(1)
        return self.linear(y) - self.same(y) + self.state.sum()


class Packed(torch.nn.Module):
    """For XNNPACK: weights that it packs anew, and ones that it takes as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(16, 128, 3)
        self.linear = torch.nn.Linear(128, 512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.relu(self.convolution(x)).mean((2, 3)))


@pytest.fixture
def model(tmp_path: Path) -> EveryKind:
    made = mapped(EveryKind(), tmp_path)
    made.same.weight = made.linear.weight
    return made


def mapped(made: Any, folder: Path) -> Any:
    made.eval()
    state = {name: value.clone() for name, value in made.state_dict().items()}
    save_file(state, folder / "model.safetensors")
    made.load_state_dict(load_file(folder / "model.safetensors"), assign=True)
    return made


INPUTS = (torch.ones(1, 16, 8, 8),)


def exported(
    model: torch.nn.Module, *, lower_to: type[Partitioner] | None = None, **config: Any
) -> ExecutorchProgramManager:
    graph = torch.export.export(model, INPUTS)
    if lower_to:
        edge = to_edge_transform_and_lower(graph, partitioner=[lower_to()])
    else:
        edge = to_edge(graph)
    return edge.to_executorch(ExecutorchBackendConfig(**config))


def files(manager: ExecutorchProgramManager) -> dict[str, bytes]:
    """The program and its named data, as they are written."""
    program = io.BytesIO()
    manager.write_to_file(program)
    return {"": program.getvalue(), **{name: bytes(cord) for name, cord in manager._tensor_data.items()}}


def lazy(manager: ExecutorchProgramManager) -> list[LazyData]:
    constants = [each.storage for each in manager._emitter_output.program.constant_buffer]
    named = manager._named_data.buffers if manager._named_data else []
    return [each for each in [*constants, *named] if isinstance(each, LazyData)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EveryKind, {}),
        (EveryKind, {"external_constants": True, "passes": [InitializedMutableBufferPass(["state"])]}),
        (Packed, {"lower_to": XnnpackPartitioner}),
        (Packed, {"lower_to": VulkanPartitioner}),
    ],
    ids=["portable", "external", "xnnpack", "vulkan"],
)
def test_files_are_those_of_upstream(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    model = mapped(kind(), tmp_path)
    expected = files(exported(model, **options))
    with low_memory_export(tmp_path):
        manager = exported(model, **options)
    # Also once the folder is empty again, and the context left.
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    assert files(manager) == expected
    assert lazy(manager) or "external_constants" in options


def test_files_of_weights_in_four_bits_are_those_of_upstream(tmp_path: Path) -> None:
    model = mapped(Packed(), tmp_path)
    scheme = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    quantize_(model, scheme)
    expected = files(exported(model, lower_to=XnnpackPartitioner))
    with low_memory_export(tmp_path):
        manager = exported(model, lower_to=XnnpackPartitioner)
    assert files(manager) == expected
    # Packed: two weights to a byte.
    assert 128 * 512 // 2 in {len(each) for each in lazy(manager)}


def test_tensors_stored_under_names_are_those_of_upstream(model: EveryKind, tmp_path: Path) -> None:
    """As some backends store them; of what lies in the checkpoint its range is kept."""
    channels_last = model.convolution.weight.to(memory_format=torch.channels_last)
    tensors = {
        "mapped": model.linear.weight.detach(),
        "part": model.linear.weight.detach()[10:200],
        "changed": model.linear.weight.detach() + 1,
        "channels last": channels_last.detach(),
        "small": model.linear.bias.detach(),
        "bfloat16": model.factor.to(torch.bfloat16),
    }

    def stored() -> NamedDataStoreOutput:
        store = NamedDataStore()
        for name, tensor in tensors.items():
            store.add_named_data(name, tensor, alignment=16)
            store.add_named_data(f"{name} again", tensor)
        return store.get_named_data_store_output()

    expected = stored()
    with low_memory_export(tmp_path):
        found = stored()
    assert found.pte_data == expected.pte_data and [*map(bytes, found.buffers)] == expected.buffers
    files = {
        name: found.buffers[found.pte_data[name].buffer_index].source.name
        for name in tensors
        if name != "small"
    }
    checkpoint = str(tmp_path / "model.safetensors")
    assert {name for name, file in files.items() if file == checkpoint} == {"mapped", "part"}


def test_it_goes_together_with_install(model: EveryKind, tmp_path: Path) -> None:
    expected = files(exported(model, external_constants=True))
    with install(), low_memory_export(tmp_path):
        assert files(exported(model, external_constants=True)) == expected


def test_a_tensor_changed_in_memory_is_not_read_from_its_file(model: EveryKind) -> None:
    with torch.no_grad():
        model.linear.weight[0, 0] = 5
    expected = files(exported(model))
    with low_memory_export():
        assert files(exported(model)) == expected


def test_a_file_that_took_the_checkpoints_place_is_not_read(model: EveryKind, tmp_path: Path) -> None:
    expected = files(exported(model))
    checkpoint = tmp_path / "model.safetensors"
    size = checkpoint.stat().st_size
    checkpoint.unlink()
    # The kernel says that the mapped file is this one.
    checkpoint.with_name("model.safetensors (deleted)").write_bytes(bytes(size))
    with low_memory_export():
        assert files(exported(model)) == expected


def test_a_checkpoint_cut_short_is_an_error_when_a_program_is_saved(
    model: EveryKind, tmp_path: Path
) -> None:
    with low_memory_export():
        manager = exported(model)
    with (tmp_path / "model.safetensors").open("r+b") as file:
        file.truncate(4096)
    with pytest.raises(etstream.Error, match="model.safetensors"):
        files(manager)


def test_copies_share_the_file_until_they_are_written_to(model: EveryKind, tmp_path: Path) -> None:
    before = (tmp_path / "model.safetensors").read_bytes()
    with low_memory_export(), torch.no_grad():
        copied = copy.deepcopy(model)
        assert _is_mapped(copied.linear.weight, tmp_path) and _is_mapped(copied.factor, tmp_path)
        assert copied.same.weight is copied.linear.weight
        copied.linear.weight.fill_(3)
        copied.factor.fill_(3)
    assert torch.all(copied.linear.weight == 3) and not torch.any(model.linear.weight == 3)
    assert not torch.any(model.factor == 3)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    assert not _is_mapped(copy.deepcopy(model).linear.weight, tmp_path)


def _is_mapped(tensor: torch.Tensor, folder: Path) -> bool:
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= tensor.data_ptr() < end:
            return line.endswith(str(folder / "model.safetensors"))
    return False


def _in_place() -> tuple[Any, ...]:
    emit = _emitter._Emitter._tensor_spec_to_evalue
    copies = torch.nn.Parameter.__deepcopy__, torch.UntypedStorage.__deepcopy__
    names = [{"bytes", "hashlib"} & vars(module).keys() for module in (_emitter, node_visitor)]
    return emit, *copies, *names, _emitter.hashlib, node_visitor.hashlib


def test_it_is_undone_at_the_end_also_after_errors_and_when_nested(tmp_path: Path) -> None:
    before = _in_place()
    assert before[-1] is hashlib
    with low_memory_export():
        within = _in_place()
        with contextlib.suppress(FileNotFoundError), low_memory_export(tmp_path):
            raise FileNotFoundError
        assert _in_place() == within != before
    assert _in_place() == before
    assert "etstream low_memory_export" not in {thread.name for thread in threading.enumerate()}


class Cycle:
    """Refers to itself, as a graph does by its nodes."""

    def __init__(self) -> None:
        self.itself = self


def is_found_soon() -> bool:
    """Whether the collector, left alone, finds something old that was dropped while 95,000 objects are made."""
    cycle = Cycle()
    gc.collect()
    gone = weakref.ref(cycle)
    del cycle
    made: list[list[object]] = [[] for _ in range(95_000)]
    return gone() is None and len(made) > 0


def test_what_is_dropped_within_is_found_although_much_is_imported() -> None:
    assert not is_found_soon()
    with low_memory_export():
        assert is_found_soon()
    assert gc.get_freeze_count() == 0 and not is_found_soon()


def test_what_a_caller_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        with low_memory_export():
            pass
        assert gc.get_freeze_count() > 100_000
    finally:
        gc.unfreeze()


def test_a_spill_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    before = _in_place()
    with pytest.raises(etstream.NotFoundError, match="nowhere"), low_memory_export(tmp_path / "nowhere"):
        pass
    assert _in_place() == before


def test_other_threads_export_as_ever_meanwhile(model: EveryKind) -> None:
    managers: list[ExecutorchProgramManager] = []

    def export() -> None:
        managers.append(exported(model))

    with low_memory_export():
        thread = threading.Thread(target=export)
        thread.start()
        thread.join()
        export()
    assert not lazy(managers[0]) and lazy(managers[1])


def test_lazy_data_is_like_bytes() -> None:
    data = bytes(range(256)) * 20
    held = LazyData(data)
    assert (len(held), held, bytes(held), hash(held)) == (len(data), data, data, hash(LazyData(data)))
    assert held != data[:-1] and held != bytes(len(data)) and held != LazyData(bytes(3))
    for index in (0, -1, slice(3, 9), slice(-4, None), slice(None, None, 7), slice(9, 3)):
        assert held[index] == data[index]
    assert copy.deepcopy(held) is held
    assert pickle.loads(pickle.dumps(held)) == data
