# SPDX-License-Identifier: BSD-3-Clause
"""Describes programs and bundles in files that any release can read: JSON, and their data beside it.

A program's folder has model.json, which is the output of `_program_to_json`, except that data of 64 bytes and more lies
in data.bin, and model.json says where. It has beside.json with mutable and named data, which are not in model.json, and
tensors.json if the program has data outside. A bundle's folder has cases.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from cases import Case, Store, Suite, Tensor, Value, write_cases
from executorch.exir import ExecutorchBackendConfig, ExecutorchProgramManager
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._dataclass import _DataclassEncoder
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize._serialize import serialize_for_executorch
from executorch.exir._serialize.data_serializer import DataPayload, DataSerializer
from executorch.exir.schema import Buffer, Program

_INLINE = 64


class _Data:
    """Bytes in a file."""

    def __init__(self, file: Path) -> None:
        self._name = file.name
        self._file = file.open("wb")

    def add(self, data: bytes) -> Any:
        """Returns the JSON that stands for the data."""
        if len(data) < _INLINE:
            return list(data)
        offset = self._file.tell()
        self._file.write(data)
        return {"file": self._name, "offset": offset, "size": len(data)}

    def close(self) -> None:
        self._file.close()


class _Recorder(DataSerializer):
    """A serializer that keeps the data outside of a program that ExecuTorch gives it."""

    def __init__(self) -> None:
        self.payloads: list[DataPayload] = []

    def serialize(self, data: DataPayload) -> Cord:
        self.payloads.append(data)
        return Cord()

    def deserialize(self, blob: Cord) -> DataPayload:
        raise NotImplementedError


def describe_export(manager: ExecutorchProgramManager, folder: Path) -> None:
    """Describes what ExecuTorch's serializers are given of an exported program."""
    output, named_data, recorder = manager._emitter_output, manager._named_data, _Recorder()
    serialize_for_executorch(output, ExecutorchBackendConfig(), recorder, named_data)
    inside = named_data is not None and named_data.pte_data
    describe(output.program, output.mutable_data, named_data if inside else None, folder, recorder.payloads)


def describe(
    program: Program,
    mutable_data: list[Buffer] | None,
    named_data: NamedDataStoreOutput | None,
    folder: Path,
    outside: Sequence[DataPayload] = (),
) -> None:
    """Describes a program, its mutable and named data, and at most one tensor data file."""
    folder.mkdir(parents=True, exist_ok=True)
    data = _Data(folder / "data.bin")

    class Encoder(_DataclassEncoder):
        def default(self, o: Any) -> Any:
            return data.add(o) if isinstance(o, bytes) else super().default(o)

    def write(name: str, described: Any) -> None:
        (folder / name).write_text(json.dumps(described, cls=Encoder))

    write("model.json", program)
    write(
        "beside.json",
        {
            "mutable_data": mutable_data and [buffer.storage for buffer in mutable_data],
            "named_data": named_data and _named(DataPayload(named_data.buffers, named_data.pte_data)),
        },
    )
    for payload in outside:
        write("tensors.json", _named(payload))
    data.close()


def _named(payload: DataPayload) -> dict[str, Any]:
    return {
        "buffers": payload.buffers,
        "entries": {
            key: {"buffer": entry.buffer_index, "alignment": entry.alignment, "layout": entry.tensor_layout}
            for key, entry in payload.named_data.items()
        },
    }


def describe_suites(suites: Sequence[Suite], folder: Path, *, by_method: bool) -> None:
    """Writes cases.json, with tensors in raw files."""

    def stored(values: Sequence[Value]) -> list[Value]:
        return [replace(each, store=Store.RAW) if isinstance(each, Tensor) else each for each in values]

    folder.mkdir(parents=True, exist_ok=True)
    raw = [
        Suite(suite.method, [Case(stored(each.inputs), stored(each.expected_outputs)) for each in suite.cases])
        for suite in suites
    ]
    write_cases(folder, raw, by_method=by_method)


def suite_of(method: str, cases: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> Suite:
    """Returns a suite of a method's inputs and outputs, in torch's tensors."""

    def values(given: Sequence[Any]) -> list[Value]:
        return [Tensor.from_torch(each, Store.RAW) if isinstance(each, torch.Tensor) else each for each in given]

    return Suite(method, [Case(values(inputs), values(outputs)) for inputs, outputs in cases])
