# SPDX-License-Identifier: BSD-3-Clause
"""Shows that the files that the other tests of this folder compare with are there: a release that wrote nothing would
agree to anything."""

from __future__ import annotations

import json

import pytest
from conftest import Files
from prepare import FIELD, LAYOUTS, NATIVE, described_models, made_up_bundles, made_up_programs, tensor_layouts
from releases import CURRENT, WRITERS, Writer


def said(folder: str) -> dict[str, str | None]:
    return json.loads((FIELD / folder / "said.json").read_text())


def as_old_as(writer: Writer, release: str) -> bool:
    return tuple(map(int, writer.as_of.split("."))) <= tuple(map(int, release.split(".")))


@pytest.mark.parametrize("folder", ["current", *(f"native/{each}" for each in NATIVE)])
def test_every_release_exports_every_model(folder: str) -> None:
    exported = said(folder)
    assert set(exported) == {model.name for model in described_models()}
    assert set(exported.values()) == {None}


def test_every_release_writes_every_model(writer: Writer, files: Files) -> None:
    wanted = {f"{model.name}.{layout}.pte" for model in described_models() for layout in LAYOUTS}
    wanted |= {f"{model.name}.bpte" for model in described_models()}
    wanted |= {f"external_constants.{layout}.ptd" for layout in tensor_layouts(writer)}
    assert {name for name, error in said(f"same/{writer}").items() if error is None} >= wanted


def test_made_up_files_are_refused_only_by_releases_that_cannot_write_them(writer: Writer) -> None:
    refused = {name for name, error in said(f"same/{writer}").items() if error is not None}
    # Programs of odd seeds have devices, from 1.3 on, and bundles of odd numbers have values that JSON can't express.
    devices = {f"program-{each.name}" for each in made_up_programs() if int(each.name) % 2}
    values = {each.name for each in made_up_bundles() if each.name.endswith("-1")}
    allowed = (devices if as_old_as(writer, "1.2") else set()) | (values if as_old_as(writer, "1.3") else set())
    assert {name.split(".")[0] for name in refused} <= allowed


def test_the_current_release_writes_what_it_exported() -> None:
    for model in described_models():
        exported = (FIELD / "current" / f"{model.name}.pte").read_bytes()
        layouts = [FIELD / "same" / str(CURRENT) / f"{model.name}.{layout}.pte" for layout in LAYOUTS]
        # One model is exported under a layout of its own.
        assert model.name == "laid_out" or exported in [file.read_bytes() for file in layouts]


def test_there_are_programs_that_the_versions_of_flatbuffers_write_differently() -> None:
    def written(writer: Writer) -> bytes:
        return (FIELD / "same" / str(writer) / "two_methods.usual.pte").read_bytes()

    for release in {writer.release for writer in WRITERS if not as_old_as(writer, "1.1")} - {"1.5.0"}:
        assert written(Writer(release, "24.3.25")) == written(Writer(release, "25.2.10"))
        assert written(Writer(release, "25.2.10")) != written(Writer(release, "25.12.19"))
