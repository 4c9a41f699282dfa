# SPDX-License-Identifier: BSD-3-Clause
"""Paths, and names in files, that are not UTF-8: Python has their bytes as surrogates, as os.fsdecode gives them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import etstream
import numpy as np
import pytest

TENSORS = {"aQbZ": np.zeros(4, np.float32), "b": np.ones((2, 2), np.float32)}
ODD = "aQ\udcffZ"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Returns a folder with a name that is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"x\xff")
    folder.mkdir()
    return folder


def with_odd_name(file: bytes) -> bytes:
    return file.replace(b"aQbZ", b"aQ\xffZ")


def test_paths_come_out_as_they_went_in(odd: Path, program: Path, cases: Path) -> None:
    path = os.fspath(odd / "x.ptd")
    etstream.save_ptd(TENSORS, path)
    with open(path, "rb") as file:
        assert etstream.Source(path).name == etstream.Source(file).name == path
    assert etstream.Checkpoint(path).files == [path] and path in repr(etstream.Checkpoint(path))
    bundle = odd / "x.bpte"
    etstream.bundle(program, cases, bundle)
    assert os.fspath(bundle) in repr(etstream.BundledProgramFile(bundle))
    bundle.write_bytes(bundle.read_bytes()[:5000])
    assert os.fspath(bundle) in str(etstream.verify(bundle)) and os.fspath(bundle) in repr(etstream.verify(bundle))


def test_paths_go_in_as_they_are(odd: Path, program: Path) -> None:
    shards = etstream.ptd_shards(TENSORS, odd / "s.ptd", split_max_size=16)
    assert shards == [os.fspath(odd / f"s-0000{i}-of-00002.ptd") for i in (1, 2)]
    assert etstream.load_ptd(shards[0]).keys() == TENSORS.keys()
    copy = shutil.copy(program, odd / f"{ODD}.pte")
    plan = etstream.share([copy, program], odd / "w.ptd", out_dir=odd / "out")
    assert list(plan.programs) == [ODD, "model"] and (odd / "out" / f"{ODD}.pte").exists()


def test_names_in_weights_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "x.ptd"
    path.write_bytes(with_odd_name(bytes(etstream.ptd(TENSORS, dry_run=True))))
    checkpoint = etstream.Checkpoint(path)
    assert list(checkpoint) == list(etstream.load_ptd(path)) == [ODD, "b"] and checkpoint[ODD].name == ODD
    assert bytes(etstream.ptd(dict(checkpoint), dry_run=True)) == path.read_bytes()
    assert etstream.extract(path, etstream.inspect(path).named_data[0].path, tmp_path / "data").size == 16


def test_names_in_other_files_are_found_again(program: Path, cases: Path) -> None:
    fat = etstream.FatContainerFile(with_odd_name(bytes(etstream.fat({"aQbZ": program}, dry_run=True))))
    assert dict(fat).keys() == {ODD} and fat[ODD].size == program.stat().st_size
    told = with_odd_name(bytes(etstream.pte(program, metadata={"aQbZ": 1}, dry_run=True).program))
    assert list(etstream.ProgramFile(told).metadata) == [ODD]
    renamed = bytes(etstream.bundle(program, cases, dry_run=True)).replace(b"forward", b"for\xffard")
    bundle = etstream.BundledProgramFile(renamed)
    assert bundle.suites[0].method_name == "for\udcffard"
    assert etstream.graph(renamed, "for\udcffard", format="dot") and etstream.verify(renamed)
    assert bytes(etstream.bundle(bundle.program, bundle.suites, dry_run=True)) == renamed


def test_the_runtime_is_given_such_paths(odd: Path, program: Path, cases: Path) -> None:
    executorch = pytest.importorskip("etstream.executorch")
    bundle = odd / "x.bpte"
    etstream.bundle(program, cases, bundle)
    opened = executorch.open_bundle(bundle)
    assert opened.methods == {"forward": 2} and os.fspath(bundle) in repr(opened)
    with pytest.raises(IndexError, match=f"{bundle}: there is no test case 2 in suite 0"):
        etstream._core.fitted_test_case(etstream.BundledProgramFile(bundle), 0, 2)
    etstream.fat({"a": program}, odd / "x.fat")
    etstream.save_ptd(TENSORS, odd / "x.ptd")
    assert executorch.load_fat(odd / "x.fat").name == "a"
