# SPDX-License-Identifier: BSD-3-Clause
"""Our schemas describe the files that ExecuTorch's do."""

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
EXECUTORCH_SCHEMAS = {
    "bundled_program": BUNDLE_SCHEMAS / "bundled_program_schema.fbs",
    "flat_tensor": FLAT_TENSOR_SCHEMAS / "flat_tensor.fbs",
    "program": PROGRAM_SCHEMAS / "program.fbs",
}
"""By the name of ours."""

BUNDLE_CHANGES = [
    ('"BP08"', '"BP09"'),
    ("root_type BundledProgram", "root_type Value"),
    ("force_align: 32", "force_align: 16"),
    ("[ubyte] (force_align: 16)", "[ubyte]"),
    ("version:uint;", "version:ulong;"),
    ("version:uint;", "version:uint = 2;"),
    ("double_val:double;", "double_val:double = 1;"),
    ("int_val:long;", "int_val:long = null;"),
    ("method_name: string;", "method_name: string (required);"),
    ("method_name: string;", "name: string;"),
    ("inputs: [Value];", "inputs: [Tensor];"),
    ("sizes: [int];", "first:int; sizes: [int];"),
    ("  Int,\n  Bool,\n", "  Bool,\n  Int,\n"),
]
PROGRAM_CHANGES = [
    ('"ET12"', '"ET13"'),
    ("root_type Program", "root_type ExecutionPlan"),
    ("[ubyte] (force_align: 16)", "[ubyte]"),
    ("storage: [ubyte] (force_align: 16)", "storage: [ubyte]"),
    ("DYNAMIC_BOUND = 1", "DYNAMIC_BOUND = 3"),
]
FLAT_TENSOR_CHANGES = [
    ('"FT01"', '"FT02"'),
    ("segment_index: uint32", "segment_index: uint64"),
    ("  // Schema version.\n  version: uint32;", "  // None."),
]


def load(schema: Path, folder: Path) -> dict[str, Any]:
    """What `schema` says, as flatc understands it; `folder` is for its files."""
    _run_flatc(["--binary", "--schema", "--bfbs-builtins", "-o", str(folder), str(schema)])
    compiled = folder / f"{schema.stem}.bfbs"
    as_json = ["--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", str(folder)]
    _run_flatc([*as_json, str(HERE / "reflection.fbs"), "--", str(compiled)])
    return described(json.loads((folder / f"{schema.stem}.json").read_text()))


def described(reflected: dict[str, Any]) -> dict[str, Any]:
    """Names without namespaces, fields by id, and types by name, so as to compare."""
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
    """The type, a vector's element type, and the table or enum that either names."""
    index = of["index"]
    if index < 0:
        return of["base_type"], of["element"], None
    is_table = "Obj" in (of["base_type"], of["element"])
    named = reflected["objects" if is_table else "enums"][index]["name"]
    return of["base_type"], of["element"], bare(named)


def bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]


@pytest.mark.parametrize("name", EXECUTORCH_SCHEMAS)
def test_schema_is_executorchs(name: str, tmp_path: Path) -> None:
    ours = load(OUR_SCHEMAS / f"{name}.fbs", tmp_path)
    assert ours == load(EXECUTORCH_SCHEMAS[name], tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [("bundled_program", *change) for change in BUNDLE_CHANGES]
    + [("program", *change) for change in PROGRAM_CHANGES]
    + [("flat_tensor", *change) for change in FLAT_TENSOR_CHANGES],
)
def test_comparison_sees_a_change(name: str, text: str, changed: str, tmp_path: Path) -> None:
    schema = EXECUTORCH_SCHEMAS[name]
    original = schema.read_text()
    assert original.count(text) >= 1
    scalar_types = schema.with_name("scalar_type.fbs").read_text()
    (tmp_path / "scalar_type.fbs").write_text(scalar_types)
    (tmp_path / "changed.fbs").write_text(original.replace(text, changed))
    assert load(tmp_path / "changed.fbs", tmp_path) != load(schema, tmp_path)
