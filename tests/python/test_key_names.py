# SPDX-License-Identifier: BSD-3-Clause
"""Notes at export time which parameter became which named data, writes these names, and shows them."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import etstream
import pytest
import torch
from etstream.executorch import install, low_memory_export, save_program, save_tensor_data
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import ExecutorchProgramManager, to_edge_transform_and_lower
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup

NAMES = ["a.weight", "a.bias", "b.weight", "b.bias"]
SCALES = ["a.weight (scales)", "b.weight (scales)"]


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(64, 32)
        self.b = torch.nn.Linear(32, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.sin(self.a(x)))


def model(quantized: bool = False, seed: int = 0) -> Layers:
    torch.manual_seed(seed)
    layers = Layers().eval()
    if quantized:
        quantize_(
            layers,
            Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)),
        )
    return layers


def lowered(layers: torch.nn.Module) -> ExecutorchProgramManager:
    program = torch.export.export(layers, (torch.ones(2, 64),))
    return to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]).to_executorch()


def saved_names(manager: Any, folder: Path, **options: Any) -> dict[str, str]:
    save_program(manager, folder / "model.pte", names=True, **options)
    names: dict[str, str] = json.loads((folder / "model.names.json").read_bytes())
    return names


def test_what_a_backend_took_as_it_was_is_found_by_its_content(tmp_path: Path) -> None:
    layers = model()
    names = saved_names(lowered(layers), tmp_path)
    assert sorted(names.values()) == sorted(NAMES)
    for key, name in names.items():
        data = layers.state_dict()[name].numpy().tobytes()
        assert key == hashlib.sha256(data).hexdigest()
    # Nobody noted the data that XNNPACK made of quantized weights.
    assert sorted(saved_names(lowered(model(quantized=True)), tmp_path).values()) == ["a.bias", "b.bias"]


@pytest.mark.parametrize("quantized", [False, True])
def test_what_xnnpack_transforms_is_noted_while_it_does(quantized: bool, tmp_path: Path) -> None:
    expected = sorted(NAMES + SCALES) if quantized else sorted(NAMES)
    with low_memory_export(spill=tmp_path, names=True):
        manager = lowered(model(quantized))
    names = saved_names(manager, tmp_path)
    assert sorted(names.values()) == expected
    assert all(("(scales)" in name) == key.startswith("scale_") for key, name in names.items())
    with install(names=True):
        manager = lowered(model(quantized))
        manager.save(str(tmp_path / "saved.pte"))
        with open(tmp_path / "written.pte", "wb") as file:
            manager.write_to_file(file)
        manager.write_to_file(io.BytesIO())
    for path in ("saved.names.json", "written.names.json"):
        assert json.loads((tmp_path / path).read_bytes()) == names
    # The program is the same, and nothing stays in place.
    assert lowered(model(quantized)).buffer == (tmp_path / "saved.pte").read_bytes() == manager.buffer
    manager.save(str(tmp_path / "plain.pte"))
    assert not (tmp_path / "plain.names.json").exists()


def test_weights_that_are_equal_have_all_names(tmp_path: Path) -> None:
    layers = model()
    layers.b.weight = torch.nn.Parameter(layers.a.weight.detach().reshape(64, 32).clone())
    with install(names=True):
        names = saved_names(lowered(layers), tmp_path)
    assert ["a.weight", "b.weight"] in names.values()


def test_reports_show_names(tmp_path: Path) -> None:
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with low_memory_export(spill=tmp_path, names=True):
            manager = lowered(model(quantized=True, seed=seed))
        names = saved_names(manager, folder)
    path = tmp_path / "1" / "model.pte"
    named_data = etstream.inspect(path).named_data
    assert {each.key: each.name for each in named_data} == names
    assert all("delegate" in use for each in named_data for use in each.asked_by)
    assert etstream.inspect(path.read_bytes()).named_data[0].name is None
    assert etstream.inspect(path.read_bytes(), names=names).named_data == named_data
    html = tmp_path / "page.html"
    etstream.inspect(path, html=html)
    assert "a.weight (scales)" in html.read_text()
    found = etstream.diff(tmp_path / "0" / "model.pte", path)
    assert not found.same_content
    told = {one.subject.rsplit(", ", 1)[-1].strip("'"): one for one in found.differences}
    assert sorted(told) == sorted(NAMES + SCALES)
    weight = told["a.bias"]
    a, b = (model(seed=seed).a.bias for seed in (0, 1))
    assert weight.elements == 32 and weight.equal == int((a == b).sum())
    assert weight.largest_difference == pytest.approx(float((a - b).abs().max()), rel=1e-6)
    assert weight.mean_difference == pytest.approx(float((a - b).abs().mean()), rel=1e-5)
    within = etstream.diff(tmp_path / "0" / "model.pte", path, atol=16)
    assert within.same_within_tolerance and {one.kind for one in within.differences} == {"tolerated"}


def test_names_go_where_they_are_asked_for(tmp_path: Path) -> None:
    manager = lowered(model())
    buffer = io.BytesIO()
    save_program(manager, buffer, names=tmp_path / "names.json")
    assert buffer.getvalue() == manager.buffer
    assert sorted(json.loads((tmp_path / "names.json").read_bytes()).values()) == sorted(NAMES)
    with open(tmp_path / "both", "w+b") as file, pytest.raises(etstream.InvalidArgumentError, match="two outputs"):
        save_program(manager, file, names=tmp_path / "both")
    with pytest.raises(etstream.InvalidArgumentError, match="give the path of the names"):
        save_program(manager, io.BytesIO(), names=True)
    assert save_tensor_data(manager, tmp_path, names=True) == []
    with pytest.raises(etstream.InvalidArgumentError, match="expected a string"):
        etstream.inspect(manager.buffer, names=b'{"a": 1}')
