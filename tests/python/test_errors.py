# SPDX-License-Identifier: BSD-3-Clause
"""Tests errors and findings: their words, the file and the place that they name, and their classes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etstream
import numpy
import pytest
import torch
from etstream.executorch import open_bundle
from etstream.results import Finding

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "program.fbs"


def test_findings_say_what_they_found(program: Path) -> None:
    sound = etstream.verify(program)
    sound.raise_if_errors()
    assert str(sound).startswith("0 errors, ") and repr(sound).startswith("<etstream.results.FileFindings: 0 errors, ")
    damaged = bytearray(program.read_bytes())
    damaged[8:200] = b"\xff" * 192
    findings = etstream.verify(damaged)
    assert not findings and findings.errors[0] in repr(findings)
    for error in findings.errors:
        assert f"\nerror: {error}" in str(findings)
    wrong = [etstream.TestCase([i], [None]) for i in range(13)]
    several = etstream.verify(bytes(etstream.bundle(program, {"forward": wrong}, unchecked=True, dry_run=True)))
    shown = "".join(f"\nerror: {error}" for error in several.errors[:20])
    assert repr(several) == f"<etstream.results.FileFindings: 26 errors, 0 warnings{shown}\nand 6 more>"
    with pytest.raises(etstream.CorruptError) as raised:
        findings.raise_if_errors()
    assert str(raised.value) == str(findings)
    first = findings.errors[0]
    assert isinstance(first, Finding) and first.filename == etstream.Source(damaged).name
    assert first.startswith(f"{first.filename}: offset {first.offset}: ")
    assert (raised.value.filename, raised.value.offset) == (first.filename, first.offset)
    unasked = etstream.verify(program, bytes(etstream.ptd({"x": torch.ones(1)}, dry_run=True)))
    unasked.raise_if_errors()
    assert unasked and str(unasked) == f"0 errors, 1 warning\nwarning: {unasked.warnings[0]}"
    assert repr(unasked) == "<etstream.results.FileFindings: 0 errors, 1 warning>"
    assert (unasked.warnings[0].filename, unasked.warnings[0].offset) == ("a bytes", None)


def test_errors_about_a_whole_file_name_it_too(program: Path, cases: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    names: list[str | None] = []

    def refused(content: bytes, read: Callable[[Path], object]) -> None:
        file.write_bytes(content)
        with pytest.raises(etstream.Error) as caught:
            read(file)
        names.append(caught.value.filename)

    for read in (etstream.ProgramFile, etstream.Checkpoint, etstream.NativePackageFile, etstream.inspect):
        refused(b"", read)
    refused(b'{"forward": [\n}', etstream.read_test_cases)
    refused(b"\x02\0\0\0\0\0\0\0{}more", etstream.Checkpoint)
    refused(program.read_bytes(), lambda path: etstream.graph(path, "x"))
    refused(program.read_bytes(), lambda path: etstream.extract(path, "segments/99", tmp_path / "out"))
    plan = etstream.bundle(file, cases, dry_run=True)
    refused(b"changed", lambda _: plan.write(tmp_path / "out"))
    refused(bytes(etstream.ptd({"x": torch.ones(1)}, dry_run=True)), lambda path: etstream.Checkpoint(path)["y"])
    refused(bytes(etstream.bundle(program, cases, dry_run=True)), lambda path: open_bundle(path).verify("x"))
    assert names == [str(file)] * 11


def test_advice_names_arguments_and_messages_keep_the_names_of_files(tmp_path: Path) -> None:
    named = tmp_path / "x; identifier = false; sync = false; head_dim.pte"
    named.touch()
    with pytest.raises(etstream.UnsupportedError) as empty:
        etstream.ProgramFile(named)
    assert str(empty.value) == f"{named}: is empty, as a download is that failed; get it again"
    assert etstream.Source(named).name == str(named)
    schema = tmp_path / "no_identifier.fbs"
    schema.write_text("table T { n: int; } root_type T;")
    with pytest.raises(etstream.UnsupportedError) as unknown:
        etstream.FlatbufferText(schema).decompile(bytes(16))
    assert str(unknown.value).endswith("has no file_identifier to look for; identifier=False does without")


def _share_with_itself(program: Path) -> None:
    etstream.share({"one": program, "two": program}, dry_run=True)


def test_a_file_that_is_not_sound_is_refused_with_its_first_errors(program: Path, tmp_path: Path) -> None:
    wrong = [etstream.TestCase([i], [None]) for i in range(13)]
    with pytest.raises(etstream.InvalidArgumentError) as many:
        etstream.bundle(program, {"forward": wrong}, dry_run=True)
    unchecked = bytes(etstream.bundle(program, {"forward": wrong}, unchecked=True, dry_run=True))
    assert len(etstream.verify(unchecked).errors) == 26
    assert str(many.value).count("method 'forward', test case ") == 3
    end = "; and 23 more errors; etstream.verify() of a bundle that is made with unchecked=True lists all"
    assert str(many.value).endswith(end)
    described = {"name": "forward", "inputs": [5, 6], "outputs": [7, 8, 9], "non_const_buffer_sizes": [0]}
    lists: dict[str, list[int]] = {key: [] for key in ("values", "chains", "operators", "delegates")}
    text = json.dumps({"execution_plan": [described | lists]})
    bad = tmp_path / "bad.pte"
    bad.write_bytes(etstream.FlatbufferText(SCHEMA).compile(text.encode()))
    errors = etstream.verify(bad).errors
    assert len(errors) == 5
    for refuse in (lambda file: etstream.pte(file, dry_run=True), etstream.Checkpoint, _share_with_itself):
        with pytest.raises(etstream.CorruptError) as unsound:
            refuse(bad)
        assert str(unsound.value) == f"{'; '.join(errors[:3])}; and 2 more errors; etstream.verify() lists all"


def test_offsets_in_a_program_are_those_of_the_file_that_holds_it(program: Path, cases: Path, tmp_path: Path) -> None:
    damaged = bytearray(program.read_bytes())
    damaged[24:28] = b"\xff" * 4  # the extended header's offset of segments
    (alone,) = etstream.verify(damaged).errors
    assert alone.offset is not None
    etstream.bundle(program, cases, tmp_path / "m.bpte")
    whole = (tmp_path / "m.bpte").read_bytes()
    at = whole.index(program.read_bytes())
    (tmp_path / "m.bpte").write_bytes(whole[:at] + damaged + whole[at + len(damaged) :])
    in_bundle = etstream.verify(tmp_path / "m.bpte").errors[0]
    assert (in_bundle.filename, in_bundle.offset) == (str(tmp_path / "m.bpte"), at + alone.offset)
    etstream.fat({"a": bytes(damaged)}, tmp_path / "m.fat")
    in_fat = etstream.verify(tmp_path / "m.fat").errors[0]
    at = (tmp_path / "m.fat").read_bytes().index(damaged)
    assert (in_fat.filename, in_fat.offset) == (str(tmp_path / "m.fat"), at + alone.offset)


def test_errors_have_the_file_whatever_its_name(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run: offset 12: of today's"
    folder.mkdir()
    named = folder / "model: offset 7: 8.pte"
    with pytest.raises(etstream.NoSuchFileError) as absent:
        etstream.ProgramFile(named)
    named.write_bytes(program.read_bytes()[:-1])
    with pytest.raises(etstream.CorruptError) as corrupt:
        etstream.ProgramFile(named)
    whole = program.read_bytes()
    named.write_bytes(whole[:4] + b"XX99" + whole[8:])
    with pytest.raises(etstream.UnsupportedError) as unknown:
        etstream.ProgramFile(named)
    for caught, offset in ((absent, None), (corrupt, 24), (unknown, 4)):
        assert (caught.value.filename, caught.value.offset) == (str(named), offset), str(caught.value)
        assert offset is None or str(caught.value).startswith(f"{named}: offset {offset}: ")
    # An error before a file is used is the first of the findings, in a message with more.
    damaged = bytearray(whole)
    damaged[92] ^= 0xFF  # an offset into the segment of constants
    named.write_bytes(damaged)
    found = etstream.verify(named).errors[0]
    with pytest.raises(etstream.CorruptError) as unsound:
        etstream.pte(named, tmp_path / "out.pte")
    assert found.startswith(f"{named}: offset ") and found in str(unsound.value)
    assert unsound.value.filename == str(named)
    assert found.startswith(f"{named}: offset {unsound.value.offset}: ")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda program: etstream.pte(program, segment_alignment=-1, dry_run=True), ValueError, "segment_alignment: .* found '-1'"),
        (lambda program: etstream.pte(program, metadata={3: 1}, dry_run=True), TypeError, "metadata: .* found 3"),
        (lambda program: etstream.pte(program, drop_method=[3], dry_run=True), TypeError, "drop_method: .* found 3"),
        (lambda program: etstream.bundle(program, {3: []}, dry_run=True), TypeError, "cases: .* found 3"),
        (lambda program: etstream.bundle(program, {}, program_alignment=-1, dry_run=True), ValueError, "program_alignment: "),
        (lambda program: etstream.fat({3: program}, dry_run=True), TypeError, "payloads: .* found 3"),
        (lambda program: etstream.fat({"a": program}, align="x", dry_run=True), ValueError, "align: .* found 'x'"),
        (lambda program: etstream.share({}, least_size=-1, dry_run=True), ValueError, "least_size: .* found '-1'"),
        (lambda program: etstream.ptd(program, segment_alignment=2**40, dry_run=True), ValueError, "segment_alignment: "),
        (lambda program: etstream.ptd(program, dtype={3: "float16"}, dry_run=True), TypeError, "dtype: .* found 3"),
        (lambda program: etstream.ptd({3: torch.ones(1)}, dry_run=True), TypeError, "a tensor's name, found 3"),
        (lambda program: etstream.ptd_shards(program, "x", split_max_size=4e9), TypeError, "max_size: .* found 4"),
        (lambda program: etstream.compare(1, 1, integer=-1), ValueError, "integer: .* found -1"),
        (lambda program: etstream.TestCase([numpy.zeros((0, 2**31), "int8")]), ValueError, r"sizes: .* found 2147483648"),
    ],
)
def test_errors_name_the_argument(program: Path, call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(program)
