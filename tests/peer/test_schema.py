# SPDX-License-Identifier: BSD-3-Clause
"""Shows that our schemas describe the same files as ExecuTorch's."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from executorch.exir._serialize._flatbuffer import _run_flatc

HERE = Path(__file__).resolve().parent
OUR_SCHEMAS = HERE.parents[1] / "schema"
BUNDLE_SCHEMAS = Path(str(files("executorch.devtools.bundled_program.serialize")))
PROGRAM_SCHEMAS = Path(str(files("executorch.exir._serialize")))
FLAT_TENSOR_SCHEMAS = Path(str(files("executorch.extension.flat_tensor.serialize")))
NATIVE_SCHEMAS = Path(str(files("executorch.backends.native.serialization")))
EXECUTORCH_SCHEMAS = {
    "bundled_program": BUNDLE_SCHEMAS / "bundled_program_schema.fbs",
    "flat_tensor": FLAT_TENSOR_SCHEMAS / "flat_tensor.fbs",
    "native_graph": NATIVE_SCHEMAS / "native_graph.fbs",
    "program": PROGRAM_SCHEMAS / "program.fbs",
}
"""ExecuTorch's schemas by the name of ours."""

# The text in ExecuTorch's schema, its replacement, and the name of the change.
BUNDLE_CHANGES = [
    ('"BP08"', '"BP09"', "identifier"),
    ("root_type BundledProgram", "root_type Value", "root"),
    ("force_align: 32", "force_align: 16", "BundledProgram.program"),
    ("[ubyte] (force_align: 16)", "[ubyte]", "Tensor.data"),
    ("version:uint;", "version:ulong;", "BundledProgram.version"),
    ("version:uint;", "version:uint = 2;", "BundledProgram.version"),
    ("double_val:double;", "double_val:double = 1;", "Double.double_val"),
    ("int_val:long;", "int_val:long = null;", "Int.int_val"),
    ("method_name: string;", "method_name: string (required);", "BundledMethodTestSuite.method_name"),
    ("method_name: string;", "name: string;", "BundledMethodTestSuite.name"),
    ("method_name: string;", "name: string;", "BundledMethodTestSuite.method_name"),
    ("inputs: [Value];", "inputs: [Tensor];", "BundledMethodTestCase.inputs"),
    ("sizes: [int];", "first:int; sizes: [int];", "Tensor.first"),
    ("  Int,\n  Bool,\n", "  Bool,\n  Int,\n", "ValueUnion.Int"),
]
PROGRAM_CHANGES = [
    ('"ET12"', '"ET13"', "identifier"),
    ("root_type Program", "root_type ExecutionPlan", "root"),
    ("[ubyte] (force_align: 16)", "[ubyte]", "Buffer.storage"),
    ("storage: [ubyte] (force_align: 16)", "storage: [ubyte]", "Buffer.storage"),
    ("DYNAMIC_BOUND = 1", "DYNAMIC_BOUND = 3", "TensorShapeDynamism.DYNAMIC_BOUND"),
    ("table Null {}", "table Null {}\ntable Nothing {}", "table Nothing"),
    ("enum DeviceType : byte", "enum DeviceType : short", "enum DeviceType"),
]
FLAT_TENSOR_CHANGES = [
    ('"FT01"', '"FT02"', "identifier"),
    ("segment_index: uint32", "segment_index: uint64", "NamedData.segment_index"),
    ("  // Schema version.\n  version: uint32;", "  // None.", "FlatTensor.version"),
]


def load(schema: Path, folder: Path) -> dict[str, Any]:
    """Returns a description of `schema`, as flatc understands it; `folder` is for its files."""
    _run_flatc(["--binary", "--schema", "--bfbs-builtins", "-o", str(folder), str(schema)])
    compiled = folder / f"{schema.stem}.bfbs"
    as_json = ["--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", str(folder)]
    _run_flatc([*as_json, str(HERE / "reflection.fbs"), "--", str(compiled)])
    return described(json.loads((folder / f"{schema.stem}.json").read_text()))


def described(reflected: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema with names without namespaces, fields by id, and types by name, for a comparison."""
    return {
        "identifier": reflected["file_ident"],
        "root": bare(reflected["root_table"]["name"]),
        "tables": {
            bare(table["name"]): [
                described_field(field, reflected)
                for field in sorted(table["fields"], key=lambda field: field["id"])
            ]
            for table in reflected["objects"]
        },
        "enums": {
            bare(enum["name"]): described_enum(enum, reflected) for enum in reflected["enums"]
        },
    }


def described_field(field: dict[str, Any], reflected: dict[str, Any]) -> dict[str, Any]:
    same = ("name", "id", "default_integer", "default_real", "required", "optional", "deprecated")
    attributes = {entry["key"]: entry.get("value") for entry in field.get("attributes", [])}
    return {
        **{key: field[key] for key in same},
        "type": described_type(field["type"], reflected),
        "force_align": attributes.get("force_align"),
    }


def described_enum(enum: dict[str, Any], reflected: dict[str, Any]) -> dict[str, Any]:
    return {
        "is_union": enum["is_union"],
        "underlying": enum["underlying_type"]["base_type"],
        "values": {
            value["name"]: (value["value"], described_type(value["union_type"], reflected))
            for value in enum["values"]
        },
    }


def described_type(of: dict[str, Any], reflected: dict[str, Any]) -> tuple[str, str, str | None]:
    """Returns the type, a vector's element type, and the table or enum that either names."""
    index = of["index"]
    if index < 0:
        return of["base_type"], of["element"], None
    is_table = "Obj" in (of["base_type"], of["element"])
    named = reflected["objects" if is_table else "enums"][index]["name"]
    return of["base_type"], of["element"], bare(named)


def bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def by_name(schema: dict[str, Any]) -> dict[str, str]:
    """Returns the description of each table, field and enum by its name; nothing is left out."""
    said = {"identifier": str(schema["identifier"]), "root": str(schema["root"])}
    for table, fields in schema["tables"].items():
        said[f"table {table}"] = "declared"
        said |= {f"{table}.{field['name']}": str(field) for field in fields}
    for enum, described in schema["enums"].items():
        said |= {f"{enum}.{name}": str(value) for name, value in described["values"].items()}
        said[f"enum {enum}"] = str({**described, "values": list(described["values"])})
    return said


def drift(ours: dict[str, Any], executorchs: dict[str, Any]) -> list[str]:
    """Returns a line for each thing that only one schema says, or that they say differently."""
    left, right = by_name(ours), by_name(executorchs)
    return [
        f"{name}: ours {left.get(name, 'has none')}; ExecuTorch's {right.get(name, 'has none')}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


@pytest.mark.parametrize("name", EXECUTORCH_SCHEMAS)
def test_schema_is_executorchs(name: str, tmp_path: Path) -> None:
    ours = load(OUR_SCHEMAS / f"{name}.fbs", tmp_path)
    lines = drift(ours, load(EXECUTORCH_SCHEMAS[name], tmp_path))
    assert not lines, "\n".join([f"{name}.fbs has drifted from ExecuTorch's:", *lines])


@pytest.mark.parametrize(
    ("name", "text", "changed", "named"),
    [("bundled_program", *change) for change in BUNDLE_CHANGES]
    + [("program", *change) for change in PROGRAM_CHANGES]
    + [("flat_tensor", *change) for change in FLAT_TENSOR_CHANGES],
)
def test_comparison_names_a_change(
    name: str, text: str, changed: str, named: str, tmp_path: Path
) -> None:
    schema = EXECUTORCH_SCHEMAS[name]
    original = schema.read_text()
    assert original.count(text) >= 1
    scalar_types = schema.with_name("scalar_type.fbs").read_text()
    (tmp_path / "scalar_type.fbs").write_text(scalar_types)
    (tmp_path / "changed.fbs").write_text(original.replace(text, changed))
    lines = drift(load(tmp_path / "changed.fbs", tmp_path), load(schema, tmp_path))
    assert any(line.startswith(f"{named}: ours ") for line in lines), lines
