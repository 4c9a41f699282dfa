# SPDX-License-Identifier: BSD-3-Clause
"""Shows that the command writes the bytes of every release, asked to by its options or because the input has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Etstream, assert_same_bytes
from conftest import Files, Outputs
from layouts import PteLayout
from prepare import (
    FIELD,
    LAYOUTS,
    described_models,
    made_up_bundles,
    made_up_layouts,
    made_up_programs,
    tensor_layouts,
)
from releases import Writer


def plan_options(options: dict[str, Any]) -> list[str]:
    return PteLayout(**options).options()


def has_nothing_beside(model: Path) -> bool:
    """Returns whether the program's JSON has all that its file has."""
    return not any(json.loads((model / "beside.json").read_text()).values())


def programs(files: Files) -> Iterator[tuple[Path, dict[str, dict[str, Any]], list[Path]]]:
    """Yields each program as the current release writes it, its layouts, and the writer's files under them."""
    for model in described_models():
        file = model.with_suffix(".pte")
        yield file, LAYOUTS, [files.folder / f"{model.name}.{name}.pte" for name in LAYOUTS]
    for program in made_up_programs():
        layouts = made_up_layouts(program)
        expected = [files.folder / f"program-{program.name}.{name}.pte" for name in layouts]
        if all(files.written(file.name) for file in expected):
            yield program / "program.pte", layouts, expected


@pytest.mark.aspect("pte")
def test_programs_are_written_as_of_a_release(writer: Writer, files: Files, outputs: Outputs) -> None:
    for program, layouts, expected in programs(files):
        for layout, file in zip(layouts.values(), expected, strict=True):
            ours = outputs.pte(program, *writer.options(), *plan_options(layout))
            assert_same_bytes(ours, file.read_bytes(), f"{program} as {file}")


@pytest.mark.aspect("pte")
def test_programs_in_json_are_written_as_of_a_release(writer: Writer, files: Files, outputs: Outputs) -> None:
    models = list(filter(has_nothing_beside, described_models()))
    assert len(models) > 5
    for model in models:
        for name, layout in LAYOUTS.items():
            ours = outputs.pte(model / "model.json", *writer.options(), *plan_options(layout))
            assert_same_bytes(ours, (files.folder / f"{model.name}.{name}.pte").read_bytes(), f"{model} {name}")


@pytest.mark.aspect("pte")
@pytest.mark.parametrize("other", [Writer("1.1.0", "25.12.19"), Writer("1.3.1", "25.2.10")], ids=str)
def test_programs_of_another_release_are_written_as_of_this_one(
    other: Writer, writer: Writer, files: Files, outputs: Outputs
) -> None:
    for model in described_models():
        name = f"{model.name}.usual.pte"
        ours = outputs.pte(Files.of(other).folder / name, *writer.options())
        assert_same_bytes(ours, (files.folder / name).read_bytes(), name)


@pytest.mark.aspect("pte")
def test_programs_stay_as_they_are_without_options(writer: Writer, files: Files, outputs: Outputs) -> None:
    for file in files.find("*.pte"):
        assert_same_bytes(outputs.pte(file), file.read_bytes(), str(file))


@pytest.mark.aspect("pte")
def test_programs_stay_of_their_writer_under_another_layout(writer: Writer, files: Files, outputs: Outputs) -> None:
    for _, layouts, (first, *others) in programs(files):
        for layout, file in zip(list(layouts.values())[1:], others, strict=True):
            ours = outputs.pte(first, *plan_options(layout))
            assert_same_bytes(ours, file.read_bytes(), f"{first} as {file}")


@pytest.mark.aspect("bpte")
def test_bundles_are_written_as_of_a_release(
    writer: Writer, files: Files, etstream: Etstream, tmp_path: Path
) -> None:
    for model in described_models():
        program = files.folder / f"{model.name}.usual.pte"
        ours = etstream.bundle(program, model / "cases.json", tmp_path / "out.bpte", "--no-sync", *writer.options())
        assert_same_bytes(ours, (files.folder / f"{model.name}.bpte").read_bytes(), model.name)


@pytest.mark.aspect("bpte")
def test_bundles_of_any_values_are_written_as_of_a_release(
    writer: Writer, files: Files, etstream: Etstream, tmp_path: Path
) -> None:
    options = ("--no-sync", "--unchecked", *writer.options())
    bundles = [bundle for bundle in made_up_bundles() if files.written(f"{bundle.name}.bpte")]
    assert bundles
    for bundle in bundles:
        ours = etstream.bundle(bundle / "program.bin", bundle / "cases.json", tmp_path / "out.bpte", *options)
        assert_same_bytes(ours, (files.folder / f"{bundle.name}.bpte").read_bytes(), bundle.name)


@pytest.mark.aspect("bpte")
def test_bundles_come_back_from_the_segmented_format(
    writer: Writer, files: Files, etstream: Etstream, tmp_path: Path
) -> None:
    for file in files.find("*.bpte"):
        etstream.convert(file, tmp_path / "segmented.bpte", "segmented")
        back = etstream.convert(tmp_path / "segmented.bpte", tmp_path / "back.bpte", "bp08")
        assert_same_bytes(back, file.read_bytes(), str(file))


@pytest.mark.aspect("ptd")
def test_named_data_is_written_as_of_a_release(
    writer: Writer, files: Files, etstream: Etstream, tmp_path: Path
) -> None:
    weights = FIELD / "current" / "external_constants.ptd"
    for name, layout in tensor_layouts(writer).items():
        options = [f"--segment-alignment={layout['segment_alignment']}"] if layout else []
        ours = etstream.ptd([weights], tmp_path / "out.ptd", "--as-of", writer.as_of, *options)
        assert_same_bytes(ours, (files.folder / f"external_constants.{name}.ptd").read_bytes(), name)
