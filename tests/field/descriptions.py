# SPDX-License-Identifier: BSD-3-Clause
"""Programs as files that any release can be given: JSON, and their data beside it.

Of a program there are model.json, which is what `_program_to_json` gives but for data of 64 bytes and more, of which
it says where they lie in data.bin; beside.json with what is not in it, mutable and named data; tensors.json if it has
data outside, and cases.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from cases import Case, Store, Suite, Tensor, write_cases
from executorch.exir import ExecutorchBackendConfig, ExecutorchProgramManager
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._dataclass import _DataclassEncoder
from executorch.exir._serialize._serialize import serialize_for_executorch
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload, DataSerializer

_INLINE = 64


class _Data:
    """Bytes in a file."""

    def __init__(self, file: Path) -> None:
        self._name = file.name
        self._file = file.open("wb")

    def add(self, data: bytes) -> Any:
        """What JSON says of them."""
        if len(data) < _INLINE:
            return list(data)
        offset = self._file.tell()
        self._file.write(data)
        return {"file": self._name, "offset": offset, "size": len(data)}

    def close(self) -> None:
        self._file.close()


class _Recorder(DataSerializer):
    """Keeps what ExecuTorch gives the serializer of data outside a program."""

    def __init__(self) -> None:
        self.payloads: list[DataPayload] = []

    def serialize(self, data: DataPayload) -> Cord:
        self.payloads.append(data)
        return Cord()

    def deserialize(self, blob: Cord) -> DataPayload:
        raise NotImplementedError


def _named(buffers: Any, entries: Mapping[str, DataEntry]) -> dict[str, Any]:
    return {
        "buffers": buffers,
        "entries": {
            key: {"buffer": entry.buffer_index, "alignment": entry.alignment, "layout": entry.tensor_layout}
            for key, entry in entries.items()
        },
    }


def describe(manager: ExecutorchProgramManager, folder: Path) -> None:
    """Describe what ExecuTorch's serializers are given of an exported program."""
    folder.mkdir(parents=True, exist_ok=True)
    data = _Data(folder / "data.bin")

    class Encoder(_DataclassEncoder):
        def default(self, o: Any) -> Any:
            return data.add(o) if isinstance(o, bytes) else super().default(o)

    def write(name: str, described: Any) -> None:
        (folder / name).write_text(json.dumps(described, cls=Encoder))

    output, named_data = manager._emitter_output, manager._named_data
    recorder = _Recorder()
    serialize_for_executorch(output, ExecutorchBackendConfig(), recorder, named_data)
    write("model.json", output.program)
    mutable = output.mutable_data
    inside = named_data is not None and named_data.pte_data
    beside = {
        "mutable_data": mutable and [buffer.storage for buffer in mutable],
        "named_data": _named(named_data.buffers, named_data.pte_data) if inside else None,
    }
    write("beside.json", beside)
    for payload in recorder.payloads:
        write("tensors.json", _named(payload.buffers, payload.named_data))
    data.close()


def describe_cases(cases: Mapping[str, list[Any]], folder: Path) -> None:
    """Write cases.json: of each method inputs and outputs."""

    def stored(values: Any) -> list[Any]:
        return [Tensor.from_torch(each, Store.RAW) if isinstance(each, torch.Tensor) else each for each in values]

    suites = [
        Suite(method, [Case(stored(inputs), stored(outputs)) for inputs, outputs in group])
        for method, group in cases.items()
    ]
    write_cases(folder, suites, by_method=True)
