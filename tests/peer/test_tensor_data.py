# SPDX-License-Identifier: BSD-3-Clause
"""Tensor data (.ptd) that ExecuTorch exports is read as ExecuTorch reads it."""

from __future__ import annotations

from pathlib import Path

import models
import pytest
import torch
from command import Etstream
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize.data_serializer import DataPayload
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer


@pytest.fixture(scope="module")
def tensor_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports the weights of the example's model, and returns their path."""
    example = models.make_example
    graph = torch.export.export(example.make_model(), (example.make_inputs(1)[0],))
    manager = to_edge(graph).to_executorch(ExecutorchBackendConfig(external_constants=True))
    folder = tmp_path_factory.mktemp("tensor_data")
    manager.write_tensor_data_to_file(str(folder))
    return next(folder.glob("*.ptd"))


def deserialized(file: Path) -> DataPayload:
    return FlatTensorSerializer().deserialize(Cord(file.read_bytes()))


def test_the_data_of_every_key_is_what_executorch_reads(
    tensor_data: Path, etstream: Etstream
) -> None:
    payload = deserialized(tensor_data)
    assert payload.named_data
    for key, entry in payload.named_data.items():
        assert etstream.extract(tensor_data, f"named/{key}") == payload.buffers[entry.buffer_index]


def test_parts_are_the_segments_that_executorch_reads(
    tensor_data: Path, etstream: Etstream
) -> None:
    payload = deserialized(tensor_data)
    inspection = etstream.inspect(tensor_data)
    assert inspection["format"] == "tensor_data"
    content = tensor_data.read_bytes()
    segments = [
        content[part["offset"] : part["offset"] + part["size"]] for part in inspection["parts"][1:]
    ]
    assert segments == [bytes(buffer) for buffer in payload.buffers if buffer]


def test_what_executorch_writes_is_sound(tensor_data: Path, etstream: Etstream) -> None:
    findings = etstream.verify(tensor_data)
    assert findings.errors == []
    assert findings.warnings == []
