# SPDX-License-Identifier: BSD-3-Clause
"""Packages of the native backend are what ExecuTorch's write_ptn writes, from tensors where they lie."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from executorch.exir._serialize._ptn import read_ptn

import etstream

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "native_package"
TENSORS = {
    "weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "again": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "scale": torch.full((2,), 0.5, dtype=torch.bfloat16),
    "state": torch.zeros(4),
    "zeros": torch.zeros(4),
}
FIRST_DAY = (1980, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("constants", [TENSORS, GOLDEN / "constants.safetensors"], ids=["tensors", "path"])
def test_the_bytes_are_executorchs(constants: object, tmp_path: Path) -> None:
    output = tmp_path / "model.ptn"
    etstream.ptn(GOLDEN / "program.ptg", constants, output, modified=FIRST_DAY)
    assert output.read_bytes() == (GOLDEN / "expected.ptn").read_bytes()
    assert etstream.ptn((GOLDEN / "empty.ptg").read_bytes(), dry_run=True).size > 28


def test_a_package_shows_what_is_in_it(tmp_path: Path) -> None:
    etstream.ptn(GOLDEN / "program.ptg", TENSORS, tmp_path / "model.ptn", align=64)
    package = etstream.NativePackageFile(tmp_path / "model.ptn")
    with zipfile.ZipFile(tmp_path / "model.ptn") as archive:
        assert [(one.name, one.crc32) for one in package.members] == [
            (one.filename, one.CRC) for one in archive.infolist()
        ]
    assert all(member.offset % 64 == 0 for member in package.members)
    assert bytes(package.graph) == (GOLDEN / "program.ptg").read_bytes()
    assert package.aliases == {"weight": "again"}
    assert {one.name for one in package.constants} == set(TENSORS) - {"weight"}
    read = read_ptn(str(tmp_path / "model.ptn"))[1]
    assert {one.name: bytes(one.data) for one in package.tensors()} == {
        key: value.flatten().view(torch.uint8).numpy().tobytes() for key, value in read.items()
    }
    assert etstream.verify(tmp_path / "model.ptn")


def test_state_that_shares_memory_is_refused() -> None:
    base = torch.zeros(8)
    shared = {**TENSORS, "state": base[:4], "zeros": base[4:]}
    with pytest.raises(etstream.InvalidArgumentError, match="'state', 'zeros' share memory"):
        etstream.ptn(GOLDEN / "program.ptg", shared, dry_run=True)
    etstream.ptn(GOLDEN / "program.ptg", {**TENSORS, "weight": base[:6], "again": base[2:]}, dry_run=True)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(etstream.InvalidArgumentError, match="asks for 5 constants that are not given"):
        etstream.ptn(GOLDEN / "program.ptg", {}, tmp_path / "model.ptn")
    with pytest.raises(etstream.UnsupportedError, match="float8_e5m2"):
        constants = {**TENSORS, "scale": torch.zeros(2).to(torch.float8_e5m2)}
        etstream.ptn(GOLDEN / "program.ptg", constants, dry_run=True)
    with pytest.raises(etstream.CorruptError, match="end record"):
        etstream.NativePackageFile(b"PK\3\4")
    assert list(tmp_path.iterdir()) == []
