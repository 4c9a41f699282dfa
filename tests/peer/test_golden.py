# SPDX-License-Identifier: BSD-3-Clause
"""The golden files are ExecuTorch's, and the command writes the bundles."""

from __future__ import annotations

from pathlib import Path

import make_golden
import pytest
from command import Etstream, assert_same_bytes

NAMES = [make.__name__ for make in make_golden.BUNDLES]


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in [make.__name__ for make in (*make_golden.BUNDLES, *make_golden.OTHERS)]
        for path in (folder / name).iterdir()
    }


@pytest.mark.parametrize("name", NAMES)
def test_command_writes_the_golden_bundle(name: str, etstream: Etstream, tmp_path: Path) -> None:
    folder = make_golden.HERE / name
    ours = etstream.bundle(
        folder / "program.pte", folder / "cases.json", tmp_path / "out.bpte", "--unchecked"
    )
    assert_same_bytes(ours, (folder / "expected.bpte").read_bytes(), name)


def test_golden_files_are_what_executorch_makes_today(tmp_path: Path) -> None:
    make_golden.write_all(tmp_path)
    assert files_below(tmp_path) == files_below(make_golden.HERE)
