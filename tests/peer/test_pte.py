# SPDX-License-Identifier: BSD-3-Clause
"""Programs written again under another layout are those that ExecuTorch serializes under it, and they run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch_bundle import LoadedProgram
from layouts import BASES, PteLayout, layouts_of, neighbours_of
from models import LARGE_PROGRAMS, PROGRAMS, CachedModel, export

RTOL, ATOL = 1e-4, 1e-4

ModelByName = Callable[[str], CachedModel]


def expected_hashes(folder: Path, base: str) -> dict[str, str]:
    """Returns the hashes of the programs that ExecuTorch makes of the base, by the layouts' keys."""
    return json.loads((folder / f"{base}.json").read_text())


def layouts(name: str, base: str) -> list[PteLayout]:
    return list(layouts_of(BASES[base], few=name in LARGE_PROGRAMS))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_layout_is_byte_identical_to_executorchs(
    name: str, base: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    folder = model(name).folder
    expected = expected_hashes(folder, base)
    assert {layout.key() for layout in layouts(name, base)} == set(expected)
    assert len(set(expected.values())) > 1
    for layout in layouts(name, base):
        ours = etstream.pte(folder / f"{base}.pte", tmp_path / "out.pte", *layout.options())
        assert hashlib.sha256(ours).hexdigest() == expected[layout.key()], layout


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_no_option_names_stays_as_it_is(
    name: str, base: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    folder = model(name).folder
    expected = expected_hashes(folder, base)
    for options, layout in neighbours_of(BASES[base]):
        ours = etstream.pte(folder / f"{base}.pte", tmp_path / "out.pte", *options)
        assert hashlib.sha256(ours).hexdigest() == expected[layout.key()], options


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_stays_as_it_is_without_options_and_comes_back_from_any_layout(
    name: str, base: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    program = model(name).folder / f"{base}.pte"
    original = program.read_bytes()
    assert etstream.pte(program, tmp_path / "same.pte") == original
    for layout in layouts(name, base):
        other = tmp_path / "other.pte"
        etstream.pte(program, other, *layout.options())
        assert etstream.pte(other, tmp_path / "back.pte", *BASES[base].options()) == original, layout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_under_another_layout_is_sound_and_gives_the_same_outputs(
    name: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    subject = model(name)
    for base, delegates in (("usual", "inline"), ("unusual", "segments")):
        out = tmp_path / "out.pte"
        options = ("--segment-alignment", "4096", "--delegates", delegates)
        etstream.pte(subject.folder / f"{base}.pte", out, *options)
        assert etstream.verify(out).errors == []
        program = LoadedProgram(out.read_bytes(), subject.weights())
        for method, group in subject.cases().items():
            outputs = program.run(method, group[0].inputs)
            torch.testing.assert_close(tuple(outputs), group[0].outputs, rtol=RTOL, atol=ATOL)


def test_constants_taken_out_of_the_flatbuffer_are_where_executorch_has_them(
    etstream: Etstream, tmp_path: Path
) -> None:
    exported = export("two_methods")
    older = tmp_path / "older.pte"
    older.write_bytes(bytes(_program_to_flatbuffer(exported.manager._emitter_output.program).data))
    with pytest.raises(RuntimeError, match="method_meta"):
        LoadedProgram(older.read_bytes()).run(next(iter(exported.cases)), [])
    ours = etstream.pte(older, tmp_path / "ours.pte")
    assert_same_bytes(ours, bytes(exported.manager.buffer), "with constants in a segment")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--segment-alignment", "48"), ("--segment-alignment", "0"), ("--delegate-alignment", "131072")],
)
def test_an_alignment_that_is_none_is_refused(
    option: str, value: str, model: ModelByName, etstream: Etstream, tmp_path: Path
) -> None:
    out = tmp_path / "out.pte"
    outcome = etstream.attempt("pte", model("two_methods").program, "-o", out, option, value)
    assert outcome.code == 1
    assert "expected a power of two from 1 to" in outcome.stderr
    assert not out.exists()
