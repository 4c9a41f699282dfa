# SPDX-License-Identifier: BSD-3-Clause
"""Tensor data in shards, and what programs say of their models."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import gguf
import numpy
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
    for read in (etstream.Checkpoint, etstream.load_ptd, lambda file: etstream.ptd(file, dry_run=True)):
        with pytest.raises(etstream.InvalidArgumentError, match=f"is file 2 of 3 of a set, .*give the first, {first}"):
            read(second)
    with pytest.raises(etstream.InvalidArgumentError, match="file 2 of 3"):
        etstream.extract(second, tmp_path / "never", tensor="b")
    with pytest.raises(etstream.InvalidArgumentError, match="file 2 of 3"):
        etstream.diff(second, first)
    assert list(etstream.Checkpoint(second, partial=True)) == ["b"]
    assert list(etstream.load_ptd(second, partial=True)) == ["b"]
    assert etstream.extract(second, tmp_path / "b.bin", tensor="b", partial=True).size == 8
    assert etstream.ptd(second, partial=True, dry_run=True).size < etstream.ptd(first, dry_run=True).size
    assert bytes(etstream.ptd([second, third, first], dry_run=True)) != b""
    assert etstream.verify(first) and not etstream.verify(second) and etstream.verify(second, partial=True)
    assert etstream.inspect(second)["notes"] == ["It is file 2 of 3 of a set. The others are not listed here."]
    assert etstream.diff(first, first)["same_bytes"]
    thin = tmp_path / "thin.pte"
    etstream.pte(program, thin, constants_to=tmp_path / "c.ptd", split_max_size=20480)
    part = tmp_path / "c-00002-of-00003.ptd"
    with pytest.raises(etstream.InvalidArgumentError, match="is file 2 of 3 of a set"):
        etstream.pte(thin, constants_from=[part], dry_run=True)
    assert etstream.pte(thin, constants_from=[part], partial=True, dry_run=True).program.size > thin.stat().st_size
    for wrong in (b"", Path(first).read_bytes()):
        Path(second).write_bytes(wrong)
        assert not etstream.verify(first)
        with pytest.raises(etstream.Error):
            etstream.load_ptd(first)
    Path(second).unlink()
    assert not etstream.verify(first)
    with pytest.raises(etstream.NotFoundError, match=second):
        etstream.Checkpoint(first)


def test_a_folder_and_an_index_are_checkpoints(tmp_path: Path) -> None:
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    for name, file in names.items():
        save_file({name: torch.ones(4)}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    shards = [tmp_path / file for file in names.values()]
    assert list(etstream.Checkpoint(tmp_path)) == ["a", "b"]
    with pytest.raises(etstream.InvalidArgumentError, match="give all 2"):
        etstream.Checkpoint(shards[0])
    index.write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": names}))
    with pytest.raises(etstream.InvalidArgumentError, match=f"give {index}"):
        etstream.Checkpoint(shards[0])
    assert etstream.Checkpoint(tmp_path).files == [str(index), *map(str, shards)]
    expected = bytes(etstream.ptd(tmp_path, dry_run=True))
    assert bytes(etstream.ptd(shards, dry_run=True)) == bytes(etstream.ptd(index, dry_run=True)) == expected
    mixed = etstream.ptd([shards[1], {"c": torch.ones(2)}, shards[0]], dedup=False, dry_run=True)
    mixed.write(tmp_path.parent / "mixed.ptd")
    assert list(etstream.Checkpoint(tmp_path.parent / "mixed.ptd")) == ["b", "c", "a"]
    assert etstream.verify(tmp_path) and etstream.verify(index)
    found = etstream.inspect(tmp_path)
    assert [one["tensors"] for one in found["files"]] == [1, 1]
    assert [part["file"] for part in found["parts"]] == [0, 1]
    assert etstream.diff(tmp_path, index)["same_bytes"]
    assert etstream.diff(tmp_path, tmp_path.parent / "mixed.ptd")["differences"]
    assert etstream.extract(tmp_path, tmp_path / "a.bin", tensor="a").size == 16
    shutil.copy(shards[0], shards[1])
    assert not etstream.verify(tmp_path)
    with pytest.raises(etstream.CorruptError, match="expected tensor 'b' in"):
        etstream.load_ptd(tmp_path)
    shards[1].unlink()
    assert not etstream.verify(index)
    with pytest.raises(etstream.NotFoundError, match="names 2 files, of which one is missing"):
        etstream.load_ptd(tmp_path)
    assert list(etstream.load_ptd(tmp_path, partial=True)) == ["a"]


def test_a_split_gguf_is_read_whole(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama", split_max_tensors=2)
    for i in range(3):
        writer.add_tensor(f"t{i}", numpy.arange(8, dtype=numpy.float32) + i)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    first, second = sorted(tmp_path.glob("m-*"))
    assert list(etstream.Checkpoint(first)) == list(etstream.Checkpoint(tmp_path)) == ["t0", "t1", "t2"]
    with pytest.raises(etstream.InvalidArgumentError, match="is file 2 of 2 of a set"):
        etstream.Checkpoint(second)
    shutil.copy(first, second)
    with pytest.raises(etstream.CorruptError, match="found split.no 0 and split.count 2"):
        etstream.Checkpoint(first)


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
    shown = {one["key"]: one["value"] for one in etstream.inspect(tmp_path / "said.pte")["metadata"]}
    assert shown["length"] == "8192" and shown["name"] == '"Llama"'
    for wrong in (2**63, ["1"], None):
        with pytest.raises(TypeError, match="metadata"):
            etstream.pte(program, metadata={"a": wrong}, dry_run=True)  # type: ignore[dict-item]
