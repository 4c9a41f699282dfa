# SPDX-License-Identifier: BSD-3-Clause
"""Shows that programs from JSON are those of ExecuTorch's serializer, and that newer schemas lose nothing."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from command import Etstream, assert_same_bytes
from executorch.exir._serialize._flatbuffer import _run_flatc
from executorch.exir._serialize._program import (
    PTEFile,
    _program_to_json,
    deserialize_pte_binary,
    serialize_pte_binary,
)
from layouts import BASES
from models import CachedModel
from random_programs import generate, random_layouts
from rounds import ROUNDS

ModelByName = Callable[[str], CachedModel]
RANDOM_PROGRAMS = 5 * ROUNDS
_SPELLINGS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
SCHEMA = Path(str(files("executorch.exir._serialize"))) / "program.fbs"


def proper_json(text: str) -> str:
    """Returns JSON with strings for numbers that are not finite, which Python's json spells as no JSON does."""
    return re.sub(r"(?<=[\[ ])(-?Infinity|NaN)(?=[\],}])", lambda match: f'"{_SPELLINGS[match[1]]}"', text)


def decompiled(program: Path, schema: Path, folder: Path) -> dict[str, Any]:
    """Returns the JSON that flatc makes of a program's flatbuffer."""
    arguments = ["--json", "--strict-json", "--raw-binary", "-o", str(folder), str(schema), "--", str(program)]
    _run_flatc(arguments)
    return json.loads((folder / f"{program.stem}.json").read_text())


def test_random_programs_from_json_are_byte_identical(etstream: Etstream, tmp_path: Path) -> None:
    described, out = tmp_path / "program.json", tmp_path / "out.pte"
    # The JSON of a program has no mutable data.
    subjects = enumerate(map(generate, count()))
    without = ((seed, subject) for seed, subject in subjects if not subject.mutable_data)
    for seed, subject in islice(without, RANDOM_PROGRAMS):
        subject = replace(subject, named_data=None)
        layout, _ = random_layouts(random.Random(f"layouts {seed}"), subject)
        described.write_text(proper_json(subject.json()))
        ours = etstream.pte(described, out, *layout.options())
        assert_same_bytes(ours, subject.serialize(layout), f"generate({seed}) from JSON, {layout}")


@pytest.mark.parametrize("name", ["two_methods", "example", "shared_named_data"])
def test_models_from_executorchs_json_are_byte_identical(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    """Gives no options, so that ExecuTorch's own defaults for exporting apply."""
    program = deserialize_pte_binary((model(name).folder / "usual.pte").read_bytes()).program
    assert len(program.execution_plan) > 0
    described = tmp_path / "model.json"
    described.write_text(_program_to_json(program))
    ours = etstream.pte(described, tmp_path / "out.pte")
    executorchs = serialize_pte_binary(PTEFile(program), extract_delegate_segments=True)
    assert_same_bytes(ours, bytes(executorchs), name)


@pytest.mark.parametrize("name", ["mobilenet_v2_xnnpack_inline", "initialized_buffers", "shared_named_data"])
@pytest.mark.parametrize("base", BASES)
def test_a_decompiled_program_comes_back_with_its_segments(
    name: str, base: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    program = model(name).folder / f"{base}.pte"
    described, out = tmp_path / f"{base}.json", tmp_path / "out.pte"
    decompiled(program, SCHEMA, tmp_path)
    ours = etstream.pte(described, out, "--segments-from", str(program), *BASES[base].options())
    assert_same_bytes(ours, program.read_bytes(), name)
    refused = etstream.attempt("pte", described, "-o", out)
    assert refused.code == 1
    assert "the JSON has none; take it from the program (--segments-from)" in refused.stderr


def test_data_may_lie_in_files(etstream: Etstream, tmp_path: Path) -> None:
    subject = replace(next(s for s in map(generate, range(99)) if not s.mutable_data), named_data=None)
    described = json.loads(proper_json(subject.json()))
    lengths = []
    data = bytearray(b"before")
    for entry, field in [(e, "storage") for e in described["constant_buffer"]] + [
        (e, "data") for e in described["backend_delegate_data"]
    ]:
        content = bytes(entry[field])
        entry[field] = {"file": "data.bin", "offset": len(data), "size": len(content)}
        data += content
        lengths.append(len(content))
    assert max(lengths) > 0
    (tmp_path / "data.bin").write_bytes(data)
    (tmp_path / "program.json").write_text(json.dumps(described))
    ours = etstream.pte(tmp_path / "program.json", tmp_path / "out.pte", *BASES["usual"].options())
    assert_same_bytes(ours, subject.serialize(BASES["usual"]), "data in files")


@pytest.fixture
def newer_schema(tmp_path: Path) -> Path:
    """Writes ExecuTorch's schema with a new field in two tables, and a new table."""
    text = SCHEMA.read_text()
    assert text.count("named_data: [NamedData];") == 1
    text = text.replace("named_data: [NamedData];", "named_data: [NamedData];\n  notes: [Note];")
    text = text.replace("table NamedData {", "table Note { author: string; stars: double = 2.5; }\n\ntable NamedData {")
    assert text.count("table SubsegmentOffsets {") == 1
    index = text.index("offsets: [uint64];", text.index("table SubsegmentOffsets {"))
    text = text[:index] + "offsets: [uint64];\n  comment: string;\n" + text[index + len("offsets: [uint64];") :]
    folder = tmp_path / "newer"
    folder.mkdir()
    (folder / "scalar_type.fbs").write_bytes(SCHEMA.with_name("scalar_type.fbs").read_bytes())
    schema = folder / "program.fbs"
    schema.write_text(text)
    return schema


def test_a_newer_schema_takes_no_newer_etstream(
    newer_schema: Path, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model("two_methods").folder / "usual.pte"
    (tmp_path / "usual").mkdir()
    described = decompiled(subject, SCHEMA, tmp_path / "usual")
    described["notes"] = [{"author": "ä", "stars": 0.1}, {"stars": 2.5}, {}]
    described["constant_segment"]["comment"] = "kept"
    source = tmp_path / "newer.json"
    source.write_text(json.dumps(described))
    options = ("--schema", str(newer_schema), "--segments-from", str(subject))
    refused = etstream.attempt("pte", source, "-o", tmp_path / "no.pte", "--segments-from", str(subject))
    assert refused.code == 1
    assert "notes" in refused.stderr

    newer = tmp_path / "newer.pte"
    etstream.pte(source, newer, *options)
    wanted = described | {"notes": [{"author": "ä", "stars": 0.1}, {}, {}]}
    expected = decompiled(newer, newer_schema, tmp_path / "usual")
    assert (expected["notes"], expected["constant_segment"]) == (wanted["notes"], wanted["constant_segment"])
    # A program that is laid out again and back is the same, which it is not without the schema.
    other = ("--segment-alignment", "4096", "--constant-tensor-alignment", "256")
    moved = tmp_path / "moved.pte"
    etstream.pte(newer, moved, "--schema", str(newer_schema), *other)
    back = etstream.pte(moved, tmp_path / "back.pte", "--schema", str(newer_schema), *BASES["usual"].options())
    assert_same_bytes(back, newer.read_bytes(), "back")
    lossy = etstream.attempt("pte", newer, "-o", tmp_path / "lossy.pte", *other)
    assert lossy.code == 1 or (tmp_path / "lossy.pte").read_bytes() != moved.read_bytes()


def test_a_schema_that_lacks_something_is_refused(newer_schema: Path, etstream: Etstream, tmp_path: Path) -> None:
    text = newer_schema.read_text()
    newer_schema.write_text(text.replace("data_buffer_idx: uint", "data_buffer_index: uint"))
    refused = etstream.attempt("pte", SCHEMA, "-o", tmp_path / "out.pte", "--schema", newer_schema)
    assert refused.code == 1
    assert "program.fbs: field Tensor.data_buffer_idx is not that of ExecuTorch 1.5.1" in refused.stderr
    newer_schema.write_text("table {")
    refused = etstream.attempt("pte", SCHEMA, "-o", tmp_path / "out.pte", "--schema", newer_schema)
    assert refused.code == 1
    assert f"{newer_schema}: line 1" in refused.stderr


def test_json_that_is_not_a_program_is_refused(etstream: Etstream, tmp_path: Path) -> None:
    described = tmp_path / "program.json"
    subject = json.loads(generate(3).json())
    for change, message in {
        '{"version": 0, "versions": 1}': "versions",
        '{"version": -1}': "version",
        '{"version": 0, "execution_plan": [{"name": 3}]}': "execution_plan[0].name",
        '{"version": 0,': "expected",
    }.items():
        described.write_text(change)
        outcome = etstream.attempt("pte", described, "-o", tmp_path / "out.pte")
        assert outcome.code == 1
        assert str(described) in outcome.stderr and message in outcome.stderr
    subject["execution_plan"][0]["inputs"] = [99999]
    described.write_text(json.dumps(subject))
    outcome = etstream.attempt("pte", described, "-o", tmp_path / "out.pte")
    assert outcome.code == 1 and "99999" in outcome.stderr
    assert not (tmp_path / "out.pte").exists()
