# SPDX-License-Identifier: BSD-3-Clause
"""Files that ExecuTorch wrote are accepted, shown as it sees them, and taken apart without loss."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import executorch_bundle
import pytest
from command import Etstream, assert_same_bytes
from executorch_bundle import described_methods
from executorch_program import segments_of
from generated_bundles import GROUPS, generate
from models import MODELS, CachedModel, CasesByMethod
from rounds import ROUNDS

LARGE_MODELS = ("mobilenet_v2", "mobilenet_v2_xnnpack_inline", "llama")
PAGE = 4096

ModelByName = Callable[[str], CachedModel]

every_model = pytest.mark.parametrize("name", MODELS)
both_files = pytest.mark.parametrize("file", ["model.pte", "expected.bpte"])


@both_files
@every_model
def test_verify_accepts_what_executorch_writes(
    name: str, file: str, model: ModelByName, etstream: Etstream
) -> None:
    path = model(name).folder / file
    assert etstream.accepts(path)
    assert etstream.verify(path).errors == []


@every_model
def test_extract_gives_back_the_program_of_executorchs_bundle(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    program = etstream.extract_program(subject.folder / "expected.bpte", tmp_path / "out.pte")
    assert_same_bytes(program, subject.program.read_bytes(), name)


@every_model
def test_extracted_cases_bundle_to_executorchs_bytes(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    cases = etstream.extract_cases(subject.folder / "expected.bpte", tmp_path / "cases")
    again = etstream.bundle(subject.program, cases, tmp_path / "again.bpte", "--no-sync")
    assert_same_bytes(again, subject.expected_bundle(), name)


@pytest.mark.parametrize("group", GROUPS)
def test_any_bundle_of_executorchs_is_the_same_after_extract_and_bundle(
    group: str, etstream: Etstream, tmp_path: Path
) -> None:
    for index in range(ROUNDS):
        bundle = generate(group, index)
        original = executorch_bundle.serialize(bundle.suites_in_file(), bundle.program)
        file = tmp_path / f"{index}.bpte"
        file.write_bytes(original)
        program = tmp_path / f"{index}.pte"
        assert etstream.extract_program(file, program) == bundle.program
        cases = etstream.extract_cases(file, tmp_path / f"{index}.cases")
        options = ("--unchecked", "--no-sync")
        again = etstream.bundle(program, cases, tmp_path / f"{index}.again.bpte", *options)
        assert_same_bytes(again, original, f"generate({group!r}, {index}), {file}")


@both_files
@every_model
def test_parts_lie_in_the_file_and_do_not_overlap(
    name: str, file: str, model: ModelByName, etstream: Etstream
) -> None:
    path = model(name).folder / file
    shown = etstream.inspect(path)
    parts = shown["parts"]
    assert shown["size"] == path.stat().st_size
    assert shown["metadata_size"] + sum(part["size"] for part in parts) == shown["size"]
    assert all(part["offset"] % part["alignment"] == 0 for part in parts)
    for part, following in pairwise([*parts, {"offset": shown["size"]}]):
        assert part["offset"] + part["size"] <= following["offset"]


def assert_is_value(text: str, value: Any) -> None:
    """Checks that the text of an input in inspect's output says `value`."""
    kind, spelt = text.split()
    read = {"integer": int, "double": float, "bool": {"true": True, "false": False}.__getitem__}
    assert read[kind](spelt) == value
    assert type(read[kind](spelt)) is type(value)


def assert_methods_are_executorchs(shown: list[Any], program: bytes, cases: CasesByMethod) -> None:
    executorchs = described_methods(program)
    assert [method["name"] for method in shown] == list(executorchs)
    for method in shown:
        inputs, outputs = executorchs[method["name"]]
        assert method["outputs"] == outputs
        assert len(method["inputs"]) == len(inputs)
        exported = cases[method["name"]][0].inputs
        for text, tensor, value in zip(method["inputs"], inputs, exported, strict=True):
            if tensor is None:
                assert_is_value(text, value)
            else:
                assert text == tensor


@both_files
@every_model
def test_methods_inputs_and_outputs_are_those_of_executorchs_runtime(
    name: str, file: str, model: ModelByName, etstream: Etstream
) -> None:
    subject = model(name)
    shown = etstream.inspect(subject.folder / file)
    assert_methods_are_executorchs(shown["methods"], subject.program.read_bytes(), subject.cases())


@every_model
def test_suites_are_those_that_executorch_was_given(
    name: str, model: ModelByName, etstream: Etstream
) -> None:
    subject = model(name)
    of_bundle = etstream.inspect(subject.folder / "expected.bpte")
    of_program = etstream.inspect(subject.program)
    assert (of_bundle["format"], of_program["format"]) == ("bundled_program", "program")
    assert of_program["suites"] == []
    assert of_bundle["suites"] == [
        {"method": method, "test_cases": len(group)}
        for method, group in sorted(subject.cases().items())
    ]


@both_files
@pytest.mark.parametrize("name", LARGE_MODELS)
def test_inspect_reads_no_payload_of_a_large_file(
    name: str, file: str, model: ModelByName, etstream: Etstream
) -> None:
    shown = etstream.inspect(model(name).folder / file)
    payloads = [part for part in shown["parts"] if not part["path"].endswith("flatbuffer")]
    metadata = shown["size"] - sum(part["size"] for part in payloads)
    # The bound allows the pages that a payload shares with its neighbours.
    assert shown["bytes_read"] <= metadata + 2 * PAGE * (len(payloads) + 2)
    # The bound says nothing if a flatbuffer holds the delegates' data.
    assert shown["bytes_read"] < shown["size"] // 50


@both_files
@every_model
def test_extracted_segments_lie_where_executorchs_header_says(
    name: str, file: str, model: ModelByName, etstream: Etstream
) -> None:
    subject = model(name)
    segments = segments_of(subject.program.read_bytes())
    assert segments
    above = "" if file == "model.pte" else "program/"
    for index, segment in enumerate(segments):
        ours = etstream.extract(subject.folder / file, f"{above}segments/{index}")
        assert_same_bytes(ours, segment, f"{name}, segment {index}")
    beyond = ("extract", subject.folder / file, f"{above}segments/{len(segments)}", "-o", "-")
    assert etstream.attempt(*beyond).code == 1
