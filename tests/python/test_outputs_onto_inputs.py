# SPDX-License-Identifier: BSD-3-Clause
"""Outputs that are inputs: nothing is written where it is still read, and no other input is replaced."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES

import etstream

SCHEMA = Path(__file__).resolve().parents[2] / "schema"


@pytest.fixture
def copy(program: Path, tmp_path: Path) -> Path:
    """Returns a program that may be written to."""
    return Path(shutil.copy(program, tmp_path / "model.pte"))


@contextmanager
def kept(*files: Path) -> Iterator[None]:
    """Checks that the files are refused as outputs, and stay as they were."""
    before = [file.read_bytes() for file in files]
    with pytest.raises(etstream.InvalidArgumentError, match="the output.* is the input"):
        yield
    assert [file.read_bytes() for file in files] == before


SOURCES: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "source": lambda path: etstream.Source(path),
    "file object": lambda path: path.open("rb"),
    "raw file object": lambda path: path.open("rb", buffering=0),
    "descriptor": lambda path: etstream.Source.descriptor(os.open(path, os.O_RDONLY), 0, path.stat().st_size),
    "parts": lambda path: [etstream.Source.file(path, 0, 1000), etstream.Source.file(path, 1000)],
}
OUTPUTS: dict[str, Callable[[Path], Any]] = {
    "file object": lambda path: path.open("r+b"),
    "raw file object": lambda path: path.open("r+b", buffering=0),
    "descriptor": lambda path: os.open(path, os.O_RDWR),
    "descriptor by path": lambda path: f"/dev/fd/{os.open(path, os.O_RDWR)}",
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_nothing_is_written_in_place_to_what_it_is_made_from(
    copy: Path, source: Callable[[Path], Any], output: Callable[[Path], Any]
) -> None:
    with kept(copy):
        etstream.pte(source(copy), output(copy), segment_alignment=65536)
    planned = etstream.pte(source(copy), segment_alignment=65536, dry_run=True).program
    with kept(copy):
        planned.write(output(copy))


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_path_may_be_that_of_the_program_which_is_replaced(copy: Path, source: Callable[[Path], Any]) -> None:
    expected = bytes(etstream.pte(copy, segment_alignment=65536, dry_run=True).program)
    etstream.pte(source(copy), copy, segment_alignment=65536)
    assert copy.read_bytes() == expected


def test_a_file_in_memory_is_not_written_to_itself(copy: Path) -> None:
    memory = io.BytesIO(copy.read_bytes())
    with pytest.raises(etstream.InvalidArgumentError, match="is the input"):
        etstream.pte(memory, memory, segment_alignment=65536)
    assert memory.getvalue() == copy.read_bytes()


def test_other_files_do_not_matter(copy: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(copy, tmp_path / "other.pte"))
    with other.open("r+b") as file:
        etstream.pte(copy, file, segment_alignment=65536)
    assert not etstream.verify(other).errors


def test_each_of_two_outputs_is_held_against_all_inputs(copy: Path, tmp_path: Path) -> None:
    with kept(copy), copy.open("r+b") as file:
        etstream.pte(copy, tmp_path / "out.pte", constants_to=file)
    assert not (tmp_path / "out.pte").exists()
    with open(tmp_path / "both", "w+b") as file, pytest.raises(etstream.InvalidArgumentError, match="two outputs"):
        etstream.pte(copy, file, constants_to=file.fileno())


def test_inputs_of_other_kinds_are_not_replaced(copy: Path, cases: Path, tmp_path: Path) -> None:
    schema = Path(shutil.copy(SCHEMA / "program.fbs", tmp_path / "s.fbs"))
    included = Path(shutil.copy(SCHEMA / "scalar_type.fbs", tmp_path))
    for output in (schema, included):
        with kept(schema, included):
            etstream.pte(copy, output, schema=schema)
    with kept(schema), schema.open("r+b") as file:
        etstream.pte(copy, file, schema=schema)
    for file in EXAMPLES.iterdir():
        if file.suffix in (".json", ".npy"):
            shutil.copy(file, tmp_path)
    with kept(tmp_path / "cases.json"):
        etstream.bundle(copy, tmp_path / "cases.json", tmp_path / "cases.json")
    with kept(tmp_path / "image_0.npy"):
        etstream.bundle(copy, tmp_path / "cases.json", tmp_path / "image_0.npy")
    with kept(copy):
        etstream.bundle(copy, tmp_path / "cases.json", copy)
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"*": "new.*"}))
    weights = tmp_path / "weights.ptd"
    etstream.pte(copy, tmp_path / "out.pte", constants_to=weights)
    with kept(rules, weights):
        etstream.ptd(weights, rules, map=rules)
    exact = etstream.ExactJson(schema)
    with kept(copy):
        exact.decompile(copy, copy)
    with kept(copy), copy.open("r+b") as file:
        exact.decompile(copy, file)


def test_a_bundle_may_be_converted_onto_itself_by_its_path(copy: Path, cases: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "model.bpte"
    etstream.bundle(copy, cases, bundle)
    etstream.convert(bundle, bundle, to="segmented")
    assert etstream.BundledProgramFile(bundle).format == "segmented"
    with kept(bundle), bundle.open("r+b") as file:
        etstream.convert(bundle, file, to="bp08")


def test_what_was_read_before_may_be_replaced_later(copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pte"
    etstream.pte(copy, other, segment_alignment=65536)
    etstream.pte(other, copy)
    assert copy.read_bytes() == other.read_bytes()


def test_two_paths_are_both_there_or_neither_is(copy: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.ptd"
    weights.write_bytes(b"old")
    (tmp_path / "folder.pte").mkdir()
    for output in ("/dev/full", tmp_path / "folder.pte"):
        with pytest.raises(etstream.Error):
            etstream.pte(copy, output, constants_to=weights)
        assert weights.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.pte", "model.pte", "w.ptd"]


def test_what_is_given_open_is_kept_as_what_is_given_by_its_path(copy: Path, cases: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(copy, tmp_path / "other.pte"))
    with kept(copy):
        etstream.share({"a": etstream.Source(copy), "b": etstream.Source(other)}, copy, out_dir=tmp_path / "o")
    with kept(copy):
        etstream.fat({"a": etstream.Source(copy)}, copy)
    image = Path(shutil.copy(EXAMPLES / "image_0.npy", tmp_path))
    for file in EXAMPLES.iterdir():
        if file.suffix in (".json", ".npy"):
            shutil.copy(file, tmp_path)
    with kept(image):
        etstream.bundle(copy, etstream.read_test_cases(tmp_path / "cases.json"), image)


def test_only_the_program_takes_the_place_of_the_program(copy: Path, tmp_path: Path) -> None:
    with kept(copy):
        etstream.pte(copy, tmp_path / "out.pte", constants_to=copy)
    assert not (tmp_path / "out.pte").exists()
    etstream.pte(copy, copy, constants_to=tmp_path / "w.ptd")
    assert etstream.verify(copy, tmp_path / "w.ptd")


def test_a_page_does_not_replace_what_it_shows(copy: Path, tmp_path: Path) -> None:
    names = tmp_path / "model.names.json"
    names.write_text("{}")
    for page in (copy, names):
        with kept(copy, names):
            etstream.inspect(copy, html=page)
        with kept(copy, names), page.open("r+b") as file:
            etstream.inspect(copy, html=file)
    with kept(names):
        etstream.inspect(copy, html=names, names=names)
    etstream.inspect(copy, html=tmp_path / "page.html")
    assert b"<html" in (tmp_path / "page.html").read_bytes()
