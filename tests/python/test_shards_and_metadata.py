# SPDX-License-Identifier: BSD-3-Clause
"""Tensor data in shards, and what programs say of their models."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import etstream

TENSORS = {"a": torch.arange(4.0), "b": torch.zeros(2), "c": torch.ones(3)}


def test_shards_are_named_and_the_first_stands_for_all(tmp_path: Path) -> None:
    paths = etstream.ptd_shards(TENSORS, tmp_path / "w.ptd", split_max_size=16)
    assert [Path(path).name for path in paths] == [f"w-0000{i}-of-00003.ptd" for i in (1, 2, 3)]
    checkpoint = etstream.Checkpoint(paths[0])
    assert [tensor.name for tensor in checkpoint.tensors] == ["a", "b", "c"]
    assert checkpoint.files == paths
    with pytest.raises(etstream.InvalidArgumentError, match="'a' has 16 bytes"):
        etstream.ptd_shards(TENSORS, tmp_path / "x.ptd", split_max_size=15)
    with pytest.raises(TypeError, match="shards are several files"):
        etstream.ptd_shards(TENSORS, 1, split_max_size=16)  # type: ignore[arg-type]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_program_s_constants_go_to_shards_and_come_back(program: Path, tmp_path: Path) -> None:
    thin = tmp_path / "thin.pte"
    plan = etstream.pte(program, thin, constants_to=tmp_path / "w.ptd", split_max_size=20480)
    assert plan.tensor_data is None and len(plan.shards) == 3
    first = tmp_path / "w-00001-of-00003.ptd"
    assert etstream.verify(thin, first)
    assert etstream.verify(thin, *sorted(tmp_path.glob("w-*")))
    assert not etstream.verify(thin, tmp_path / "w-00002-of-00003.ptd")
    etstream.pte(thin, tmp_path / "back.pte", constants_from=[first])
    assert etstream.verify(tmp_path / "back.pte")


def test_a_part_of_a_set_takes_a_word(program: Path, tmp_path: Path) -> None:
    first, second, third = etstream.ptd_shards(TENSORS, tmp_path / "w.ptd", split_max_size=16)
    thin, part = tmp_path / "thin.pte", tmp_path / "c-00002-of-00003.ptd"
    etstream.pte(program, thin, constants_to=tmp_path / "c.ptd", split_max_size=20480)
    calls: list[Callable[..., Any]] = [
        lambda **options: list(etstream.Checkpoint(second, **options)) == ["b"],
        lambda **options: list(etstream.load_ptd(second, **options)) == ["b"],
        lambda **options: etstream.ptd(second, dry_run=True, **options).size > 8,
        lambda **options: not etstream.diff(second, first, **options).same_bytes,
        lambda **options: etstream.pte(thin, constants_from=[part], dry_run=True, **options).program.size > 0,
    ]
    for call in calls:
        with pytest.raises(etstream.InvalidArgumentError, match=r"is file 2 of 3 of a set, .*give the first, .*-00001-"):
            call()
        assert call(partial=True)
    assert bytes(etstream.ptd([second, third, first], dry_run=True)) != b""
    assert etstream.verify(first) and not etstream.verify(second) and etstream.verify(second, partial=True)
    Path(second).unlink()
    assert not etstream.verify(first)
    with pytest.raises(etstream.NotFoundError, match=second):
        etstream.Checkpoint(first)


def test_a_folder_and_an_index_are_checkpoints(tmp_path: Path) -> None:
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    for name, file in names.items():
        save_file({name: torch.ones(4)}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": names}))
    shards = [tmp_path / file for file in names.values()]
    assert list(etstream.Checkpoint(tmp_path)) == ["a", "b"]
    assert etstream.Checkpoint(tmp_path).files == [str(index), *map(str, shards)]
    etstream.ptd([shards[1], {"c": torch.ones(2)}, shards[0]], mixed := tmp_path.parent / "mixed.ptd", dedup=False)
    assert list(etstream.Checkpoint(mixed)) == ["b", "c", "a"]
    assert etstream.verify(tmp_path) and etstream.diff(tmp_path, index).same_bytes
    assert [part.file for part in etstream.inspect(tmp_path).parts] == [0, 1]
    assert etstream.extract(tmp_path, "named/a", tmp_path / "a.bin").size == 16
    shards[1].unlink()
    assert not etstream.verify(index)
    with pytest.raises(etstream.NotFoundError, match="names 2 files, of which one is missing"):
        etstream.load_ptd(tmp_path)
    assert list(etstream.load_ptd(tmp_path, partial=True)) == ["a"]


def test_ready_made_rules_say_what_they_miss_and_whom_they_are_for(tmp_path: Path) -> None:
    name = "model.layers.*.mlp.up_proj.weight"
    save_file({name.replace("*", "0"): torch.ones(4), "other": torch.ones(4)}, tmp_path / "model.safetensors")
    with pytest.warns(etstream.RulesWarning) as caught:
        etstream.ptd(tmp_path, map="llama", dry_run=True)
    rules, tensors = (one.message for one in caught)
    assert isinstance(rules, etstream.RulesWarning) and isinstance(tensors, etstream.RulesWarning)
    assert "model.embed_tokens.weight" in rules.names and name not in rules.names
    assert tensors.names == ["other"]
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')
    with pytest.raises(etstream.InvalidArgumentError, match="found 'qwen2'; give the rules qwen2_5"):
        etstream.ptd(tmp_path, map="llama", dry_run=True)


def test_metadata_is_bytes_under_its_key(program: Path, tmp_path: Path) -> None:
    values = {"name": "Llama", "length": 8192, "theta": 0.5, "eos": [1, 2], "raw": b"\0"}
    etstream.pte(program, tmp_path / "said.pte", metadata=values)
    found = {key: bytes(value) for key, value in etstream.ProgramFile(tmp_path / "said.pte").metadata.items()}
    assert found == {
        "name": b"Llama",
        "length": struct.pack("<q", 8192),
        "theta": struct.pack("<d", 0.5),
        "eos": struct.pack("<2q", 1, 2),
        "raw": b"\0",
    }
    shown = {one.key: one.value for one in etstream.inspect(tmp_path / "said.pte").metadata}
    assert shown["length"] == "8192" and shown["name"] == '"Llama"'
    for wrong in (2**63, ["1"], None):
        with pytest.raises(TypeError, match="metadata"):
            etstream.pte(program, metadata={"a": wrong}, dry_run=True)  # type: ignore[dict-item]
