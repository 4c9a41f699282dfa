# SPDX-License-Identifier: BSD-3-Clause
"""Writes files with an ExecuTorch release's own serializers.

    PYTHONPATH=RELEASE:FLATBUFFERS python write_as.py TASKS.json

RELEASE and FLATBUFFERS are folders with a release of either, which come before those of the environment. A task is one
file to be written:

    {"program": "model.json", "mutable_data": [DATA...], "named_data": {...}, "options": {...}, "output": "model.pte"}
    {"bundle": "model.pte", "cases": "cases.json", "output": "model.bpte"}
    {"tensors": "tensors.json", "options": {...}, "output": "model.ptd"}

"program" is the output of 1.5.1's `_program_to_json`, "options" are the serializer's own, "cases" those of `etstream
bundle`, with tensors in raw files. "named_data" and tensors.json are

    {"buffers": [DATA...], "entries": {KEY: {"buffer": 0, "alignment": 16, "layout": null or {"scalar_type": 6, ...}}}}

DATA is a list of numbers or {"file": F, "offset": N, "size": N}, F relative to the folder of model.json or
tensors.json. For each task a line is printed: {"output": F, "error": null or the release's message}.
"""

from __future__ import annotations

import contextlib
import enum
import json
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from executorch.devtools.bundled_program import serialize as bundles
from executorch.devtools.bundled_program.schema import bundled_program_schema as bp_schema
from executorch.devtools.bundled_program.version import BUNDLED_PROGRAM_SCHEMA_VERSION
from executorch.exir._serialize import _named_data_store as named
from executorch.exir._serialize import _program as programs
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import Buffer, Program
from executorch.extension.flat_tensor.serialize.flat_tensor_schema import TensorLayout
from executorch.extension.flat_tensor.serialize.serialize import (
    FlatTensorConfig,
    FlatTensorSerializer,
)

_SCALAR_TYPES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "complex32": 8,
    "complex64": 9,
    "complex128": 10,
    "bool": 11,
    "qint8": 12,
    "quint8": 13,
    "qint32": 14,
    "bfloat16": 15,
    "quint4x2": 16,
    "quint2x4": 17,
    "bits16": 22,
    "float8_e5m2": 23,
    "float8_e4m3fn": 24,
    "float8_e5m2fnuz": 25,
    "float8_e4m3fnuz": 26,
    "uint16": 27,
    "uint32": 28,
    "uint64": 29,
}
"""The scalar types by torch's names; no release has a table of all."""


class Describer:
    """A maker of a release's own objects from the JSON in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def data(self, described: Any) -> bytes:
        if isinstance(described, dict):
            with (self._folder / described["file"]).open("rb") as file:
                file.seek(described.get("offset", 0))
                return file.read(described.get("size", -1))
        return bytes(described)

    def object(self, described: dict[str, Any], of: Any) -> Any:
        """Returns an object of a dataclass. Fields that the release lacks have to say nothing."""
        types = get_type_hints(of)
        members = {}
        for name in (field.name for field in fields(of)):
            if name in described:
                kind = described.get(f"{name}_type")
                members[name] = self._value(described[name], types[name], kind)
        unknown = {name for name in described if name.removesuffix("_type") not in types and name not in types}
        if any(described[name] not in (None, 0) for name in unknown):
            raise ValueError(f"this release's {of.__name__} has no {', '.join(sorted(unknown))}")
        return of(**members)

    def _value(self, described: Any, of: Any, kind: str | None) -> Any:
        if described is None:
            return None
        if get_origin(of) is Union:
            members = [each for each in get_args(of) if each is not type(None)]
            if kind is not None:
                (of,) = [each for each in members if each.__name__ == kind]
            elif len(members) == 1:
                (of,) = members
            else:
                return described
        if is_dataclass(of):
            return self.object(described, of)
        if get_origin(of) is list:
            return [self._value(each, get_args(of)[0], None) for each in described]
        if of is bytes:
            return self.data(described)
        return of(described) if isinstance(of, enum.EnumMeta) else described

    def program(self, described: dict[str, Any]) -> Program:
        return self.object(described, Program)

    def buffers(self, described: list[Any] | None) -> list[Buffer] | None:
        return None if described is None else [Buffer(self.data(each)) for each in described]

    def entries(self, described: dict[str, Any]) -> dict[str, DataEntry]:
        return {
            key: DataEntry(entry["buffer"], entry["alignment"], self._layout(entry.get("layout")))
            for key, entry in described.items()
        }

    def _layout(self, described: dict[str, Any] | None) -> TensorLayout | None:
        return None if described is None else self.object(described, TensorLayout)

    def named_data(self, described: dict[str, Any] | None) -> named.NamedDataStoreOutput | None:
        """Returns named data as the release's own store has it after it is given the entries in their order."""
        if described is None:
            return None
        store = named.NamedDataStore()
        buffers = list(map(self.data, described["buffers"]))
        for key, entry in described["entries"].items():
            store.add_named_data(key, buffers[entry["buffer"]], entry["alignment"])
        return store.get_named_data_store_output()

    def payload(self, described: dict[str, Any]) -> DataPayload:
        return DataPayload(list(map(self.data, described["buffers"])), self.entries(described["entries"]))

    def suites(self, described: Any) -> list[bp_schema.BundledMethodTestSuite]:
        """Returns the suites, sorted by their methods if they are an object, as ExecuTorch does."""
        if isinstance(described, dict):
            described = [{"method": method, "cases": described[method]} for method in sorted(described)]
        return [
            bp_schema.BundledMethodTestSuite(
                suite["method"],
                [
                    bp_schema.BundledMethodTestCase(
                        list(map(self._bundled, case["inputs"])), list(map(self._bundled, case["expected_outputs"]))
                    )
                    for case in suite["cases"]
                ],
            )
            for suite in described
        ]

    def _bundled(self, value: Any) -> bp_schema.Value:
        if isinstance(value, dict) and "double" in value:
            value = float(value["double"])
        if isinstance(value, dict):
            order = value.get("dim_order", list(range(len(value["shape"]))))
            data = (self._folder / value["raw"]).read_bytes()
            scalar_type = ScalarType(_SCALAR_TYPES[value["dtype"]])
            return bp_schema.Value(bp_schema.Tensor(scalar_type, value["shape"], data, order))
        kinds = {bool: bp_schema.Bool, int: bp_schema.Int, float: bp_schema.Double, type(None): lambda _: None}
        return bp_schema.Value(kinds[type(value)](value))


def _read(file: str) -> tuple[Any, Describer]:
    return json.loads(Path(file).read_text()), Describer(Path(file).parent)


def write_program(task: dict[str, Any]) -> bytes:
    described, describer = _read(task["program"])
    program = describer.program(described)
    parts = {
        "mutable_data": describer.buffers(task.get("mutable_data")),
        "named_data": describer.named_data(task.get("named_data")),
    }
    if hasattr(programs, "PTEFile"):
        return bytes(programs.serialize_pte_binary(programs.PTEFile(program, **parts), **task["options"]))
    return bytes(programs.serialize_pte_binary(program, **parts, **task["options"]))  # up to 1.0


def write_bundle(task: dict[str, Any]) -> bytes:
    described, describer = _read(task["cases"])
    program = Path(task["bundle"]).read_bytes()
    bundle = bp_schema.BundledProgram(BUNDLED_PROGRAM_SCHEMA_VERSION, describer.suites(described), program)
    if hasattr(bundles, "_bundled_program_schema_to_flatbuffer"):
        return bundles._bundled_program_schema_to_flatbuffer(bundle)
    return bundles.convert_to_flatbuffer(bundles.serialize_from_bundled_program_to_json(bundle))  # up to 1.3


def write_tensors(task: dict[str, Any]) -> bytes:
    described, describer = _read(task["tensors"])
    config = FlatTensorConfig(**task["options"])
    return bytes(FlatTensorSerializer(config).serialize(describer.payload(described)))


_WRITERS = {"program": write_program, "bundle": write_bundle, "tensors": write_tensors}


def main() -> None:
    for task in json.loads(Path(sys.argv[1]).read_text()):
        (writer,) = [write for kind, write in _WRITERS.items() if kind in task]
        error = None
        try:
            # flatc and ExecuTorch print to standard output, where our lines go.
            with contextlib.redirect_stdout(sys.stderr):
                Path(task["output"]).write_bytes(writer(task))
        except Exception as caught:  # any exception means that the release does not write that
            error = f"{type(caught).__name__}: {caught}"
        print(json.dumps({"output": task["output"], "error": error}), flush=True)


if __name__ == "__main__":
    main()
