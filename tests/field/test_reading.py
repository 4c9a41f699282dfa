# SPDX-License-Identifier: BSD-3-Clause
"""Reads files of every release: they are found sound, shown, taken apart, and say the same as the current release's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Etstream, assert_same_bytes
from conftest import Files
from prepare import FIELD, NATIVE, described_models
from releases import Writer

pytestmark = pytest.mark.aspect("read")


def model_files(files: Files, kind: str) -> list[Path]:
    names = tuple(f"{model.name}." for model in described_models())
    return [file for file in files.find(f"*.{kind}") if file.name.startswith(names)]


def content_differences(etstream: Etstream, a: Path, b: Path) -> list[str]:
    _, found = etstream.diff(a, b)
    return [difference["subject"] for difference in found["differences"] if difference["kind"] == "content"]


def assert_read(etstream: Etstream, file: Path) -> None:
    assert etstream.verify(file).errors == [], file
    shown = etstream.inspect(file)
    assert shown["size"] == file.stat().st_size
    assert shown["format"] == {".pte": "program", ".bpte": "bundled_program", ".ptd": "tensor_data"}[file.suffix]


@pytest.mark.parametrize("kind", ["pte", "bpte", "ptd"])
def test_files_are_sound(kind: str, writer: Writer, files: Files, etstream: Etstream) -> None:
    for file in model_files(files, kind):
        assert_read(etstream, file)


@pytest.mark.parametrize("kind", ["pte", "bpte", "ptd"])
def test_files_say_what_the_current_release_writes(
    kind: str, writer: Writer, files: Files, current: Files, etstream: Etstream
) -> None:
    for file in files.find(f"*.{kind}"):
        if current.written(file.name):
            assert content_differences(etstream, current.folder / file.name, file) == [], file


def test_bundles_are_taken_apart_without_loss(
    writer: Writer, files: Files, etstream: Etstream, tmp_path: Path
) -> None:
    for model in described_models():
        bundle = files.folder / f"{model.name}.bpte"
        program = etstream.extract_program(bundle, tmp_path / "out.pte")
        assert_same_bytes(program, (files.folder / f"{model.name}.usual.pte").read_bytes(), model.name)
        cases = etstream.extract_cases(bundle, tmp_path / model.name)
        again = etstream.bundle(tmp_path / "out.pte", cases, tmp_path / "out.bpte", "--no-sync", *writer.options())
        assert_same_bytes(again, bundle.read_bytes(), model.name)


def test_named_data_is_taken_apart(writer: Writer, files: Files, etstream: Etstream) -> None:
    (model,) = [model for model in described_models() if (model / "tensors.json").exists()]
    described = json.loads((model / "tensors.json").read_text())
    data = (model / "data.bin").read_bytes()
    for file in files.find(f"{model.name}.*.ptd"):
        for key, entry in described["entries"].items():
            where = described["buffers"][entry["buffer"]]
            wanted = bytes(where) if isinstance(where, list) else data[where["offset"] :][: where["size"]]
            assert etstream.extract(file, f"named/{key}") == wanted


def test_programs_and_their_named_data_fit(writer: Writer, files: Files, etstream: Etstream) -> None:
    program, weights = (files.folder / f"external_constants.usual.{kind}" for kind in ("pte", "ptd"))
    assert etstream.verify(program, weights).errors == []
    assert etstream.inspect(program)["methods"]


@pytest.mark.parametrize("writer", NATIVE, ids=str)
def test_what_a_release_exported_is_read(writer: Writer, etstream: Etstream, tmp_path: Path) -> None:
    folder = FIELD / "native" / str(writer)
    for file in sorted(folder.glob("*.*pt[ed]")):
        assert_read(etstream, file)
    for bundle in folder.glob("*.bpte"):
        program = etstream.extract_program(bundle, tmp_path / "out.pte")
        assert_same_bytes(program, bundle.with_suffix(".pte").read_bytes(), bundle.name)
        etstream.extract_cases(bundle, tmp_path / bundle.stem)
