# SPDX-License-Identifier: BSD-3-Clause
"""Tensor data in shards, and what programs say of their models."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch

import etstream

TENSORS = {"a": torch.arange(4.0), "b": torch.zeros(2), "c": torch.ones(3)}


def test_shards_are_named_and_the_first_stands_for_all(tmp_path: Path) -> None:
    paths = etstream.write_tensor_data_shards(TENSORS, tmp_path / "w.ptd", max_size=16)
    assert [Path(path).name for path in paths] == [f"w-0000{i}-of-00003.ptd" for i in (1, 2, 3)]
    checkpoint = etstream.Checkpoint(paths[0])
    assert [tensor.name for tensor in checkpoint.tensors] == ["a", "b", "c"]
    assert checkpoint.files == paths
    with pytest.raises(etstream.InvalidArgumentError, match="'a' has 16 bytes"):
        etstream.write_tensor_data_shards(TENSORS, tmp_path / "x.ptd", max_size=15)
    with pytest.raises(TypeError, match="shards are several files"):
        etstream.write_tensor_data_shards(TENSORS, 1, max_size=16)  # type: ignore[arg-type]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_program_s_constants_go_to_shards_and_come_back(program: Path, tmp_path: Path) -> None:
    thin = tmp_path / "thin.pte"
    plan = etstream.rewrite_program(program, thin, constants_to=tmp_path / "w.ptd", split_max_size=20480)
    assert plan.tensor_data is None and len(plan.shards) == 3
    first = tmp_path / "w-00001-of-00003.ptd"
    assert etstream.verify(thin, first)
    assert etstream.verify(thin, *sorted(tmp_path.glob("w-*")))
    assert not etstream.verify(thin, tmp_path / "w-00002-of-00003.ptd")
    etstream.rewrite_program(thin, tmp_path / "back.pte", constants_from=[first])
    assert etstream.verify(tmp_path / "back.pte")


def test_metadata_is_bytes_under_its_key(program: Path, tmp_path: Path) -> None:
    values = {"name": "Llama", "length": 8192, "theta": 0.5, "eos": [1, 2], "raw": b"\0"}
    etstream.rewrite_program(program, tmp_path / "said.pte", metadata=values)
    found = {key: bytes(value) for key, value in etstream.ProgramFile(tmp_path / "said.pte").metadata.items()}
    assert found == {
        "name": b"Llama",
        "length": struct.pack("<q", 8192),
        "theta": struct.pack("<d", 0.5),
        "eos": struct.pack("<2q", 1, 2),
        "raw": b"\0",
    }
    shown = {one["key"]: one["value"] for one in etstream.inspect(tmp_path / "said.pte")["metadata"]}
    assert shown["length"] == "8192" and shown["name"] == '"Llama"'
    for wrong in (2**63, ["1"], None):
        with pytest.raises(TypeError, match="metadata"):
            etstream.plan_program(program, metadata={"a": wrong})  # type: ignore[dict-item]
