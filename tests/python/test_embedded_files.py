# SPDX-License-Identifier: BSD-3-Clause
"""embed() writes what `etstream embed` writes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import etstream
import pytest
from conftest import Command


@pytest.mark.parametrize("name", ["model.o", "model.S"])
def test_each_output_is_that_of_the_command(name: str, program: Path, command: Command, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours" / name, tmp_path / "theirs" / name
    for path in (ours, theirs):
        path.parent.mkdir()
    outputs = [ours, ours.with_suffix(".h")]
    etstream.embed(program, outputs, target="aarch64", symbol="model", section="models", align="4K")
    options = ["--target", "aarch64", "--symbol", "model", "--section", "models", "--align", "4K"]
    header = theirs.with_suffix(".h")
    assert command("embed", program, *options, "-o", theirs, "-o", header).returncode == 0
    assert ours.read_bytes() == theirs.read_bytes()
    assert outputs[1].read_bytes() == header.read_bytes()
    with pytest.raises(etstream.InvalidArgumentError, match="expected also an output with the bytes"):
        etstream.embed(program, ours.with_name("alone.h"))


def test_the_defaults_are_those_of_the_command(program: Path, tmp_path: Path) -> None:
    etstream.embed(program, [tmp_path / "model.h", str(tmp_path / "model.S")])
    assert "extern const unsigned char model_pte[23400];" in (tmp_path / "model.h").read_text()
    assembly = (tmp_path / "model.S").read_text()
    assert ".pushsection .rodata.model_pte," in assembly and ".balign 128\n" in assembly
    assert etstream.inspect(program).memory_alignment == 128


def test_what_can_not_be_is_refused_and_nothing_is_written(program: Path, tmp_path: Path) -> None:
    for message, arguments in {
        "target: expected one of 'arm', 'aarch64', .*, found 'sparc'": {"target": "sparc"},
        "model.o: expected a target, found none": {},
        r"expected a symbol that is a name in C and C\+\+, found '1'": {"target": "arm", "symbol": "1"},
        "alignment 24: expected a power of two": {"target": "arm", "align": 24},
    }.items():
        with pytest.raises(etstream.InvalidArgumentError, match=message):
            etstream.embed(program, [tmp_path / "model.h", tmp_path / "model.o"], **arguments)
    wrong: list[Any] = [program.read_bytes(), io.BytesIO(), etstream.Source(program), 3]
    for one in wrong:
        found = type(one).__name__
        with pytest.raises(TypeError, match=f"^file: expected a path, found {found}$"):
            etstream.embed(one, tmp_path / "model.h")
        with pytest.raises(TypeError, match=f"^output: expected a path, found {found}$"):
            etstream.embed(program, [tmp_path / "model.h", one])
        with pytest.raises(TypeError, match="^output: expected paths, found .{1,240}$"):
            etstream.embed(program, one)
    assert list(tmp_path.iterdir()) == []
