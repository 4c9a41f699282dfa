# SPDX-License-Identifier: BSD-3-Clause
"""Reads weights in several files, as other tools write them: whole sets are read, parts are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import gguf
import numpy
import pytest
import torch
from command import Etstream, assert_same_bytes
from families import FAMILIES, Family, state_dict_of
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_ptd import bytes_of
from transformers import AutoModelForCausalLM


def refused(etstream: Etstream, *arguments: str | Path) -> str:
    """Returns the message with which the command refuses."""
    outcome = etstream.attempt(*arguments)
    assert outcome.code == 1, (arguments, outcome)
    return outcome.stderr


def split_gguf(folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    writer = gguf.GGUFWriter(folder / "m.gguf", "llama", split_max_tensors=2)
    for i in range(5):
        writer.add_tensor(f"t{i}", numpy.arange(8, dtype=numpy.float32) + i)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob("m-*"))


def names_in(etstream: Etstream, file: Path) -> list[str]:
    return [entry["key"] for entry in etstream.inspect(file)["named_data"]]


def test_a_gguf_set_is_read_whole_or_not_at_all(etstream: Etstream, tmp_path: Path) -> None:
    shards = split_gguf(tmp_path / "model")
    fields = [gguf.GGUFReader(shard).fields for shard in shards]
    assert [int(each["split.no"].contents()) for each in fields] == [0, 1, 2]
    assert {int(each["split.tensors.count"].contents()) for each in fields} == {5}
    out = tmp_path / "out.ptd"
    expected = etstream.ptd([shards[0]], out)
    assert names_in(etstream, out) == [f"t{i}" for i in range(5)]
    assert_same_bytes(etstream.ptd([shards[0].parent], out), expected, "of the folder")
    assert_same_bytes(etstream.ptd(shards, out), expected, "of all files")
    for later in shards[1:]:
        assert f"give the first, {shards[0]}" in refused(etstream, "ptd", later, "-o", tmp_path / "never")
        assert not etstream.accepts(later)
    etstream.ptd([shards[1]], out, "--partial")
    assert names_in(etstream, out) == ["t2", "t3"]
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    parts = [shutil.copy(shard, renamed / f"part{i + 1}.gguf") for i, shard in enumerate(shards)]
    assert_same_bytes(etstream.ptd(parts, out), expected, "of renamed files")
    refused(etstream, "ptd", parts[0], "-o", tmp_path / "never")
    shutil.copy(shards[2], shards[1])
    assert "split.no 2" in refused(etstream, "ptd", shards[0], "-o", tmp_path / "never")
    assert not etstream.accepts(shards[0])
    shards[1].unlink()
    assert str(shards[1]) in refused(etstream, "ptd", shards[0], "-o", tmp_path / "never")
    assert not etstream.accepts(shards[0])
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_folder_that_transformers_writes_is_a_checkpoint(
    family: Family, etstream: Etstream, tmp_path: Path
) -> None:
    model = family.pretrained()
    folder = tmp_path / "model"
    model.save_pretrained(folder, max_shard_size="60KB")
    index = folder / "model.safetensors.index.json"
    shards = sorted(folder.glob("model-*.safetensors"))
    assert index.exists() and len(shards) > 1
    assert etstream.verify(folder).errors == [] == etstream.verify(index).warnings
    assert json.loads(index.read_text())["metadata"]["total_size"] == sum(
        part["size"] for part in etstream.inspect(folder)["parts"]
    )
    whole = tmp_path / "whole.safetensors"
    etstream.ptd([folder], whole, "--to", "safetensors")
    theirs: dict[str, torch.Tensor] = {}
    for shard in shards:
        theirs |= load_file(shard)
    ours = load_file(whole)
    assert sorted(ours) == sorted(theirs)
    assert all(bytes_of(ours[name]) == bytes_of(theirs[name]) for name in theirs)
    assert etstream.diff(folder, whole)[1]["same_content"]
    one = sorted(load_file(shards[0]))[0]
    assert etstream.extract(folder, f"named/{one}") == bytes_of(theirs[one])
    # The family's own map gives no message; the map of another family is refused.
    outcome = etstream.attempt("ptd", folder, "--map", family.name, "-o", tmp_path / "mapped.ptd")
    assert (outcome.code, outcome.stderr) == (0, "")
    other = "qwen3" if family.name != "qwen3" else "llama"
    assert "config.json: expected model_type" in refused(
        etstream, "ptd", folder, "--map", other, "-o", tmp_path / "never"
    )
    assert str(index) in refused(etstream, "ptd", shards[0], "--map", family.name, "-o", tmp_path / "never")
    # This download is not complete.
    shutil.copy(shards[0], shards[1])
    assert not etstream.accepts(folder)
    shards[1].unlink()
    assert not etstream.accepts(index)
    assert str(shards[1]) in refused(etstream, "ptd", folder, "-o", tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_of_a_folder_the_file_that_transformers_loads_is_read(etstream: Etstream, tmp_path: Path) -> None:
    family = FAMILIES[0]
    model = family.pretrained()
    model.save_pretrained(tmp_path, max_shard_size="60KB")
    model.save_pretrained(tmp_path / "one")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    single = tmp_path / "model.safetensors"
    for out in (single, tmp_path / "consolidated.safetensors"):
        save_file({name: tensor.clone() for name, tensor in model.state_dict().items()}, out, {"format": "pt"})
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    etstream.ptd([tmp_path], tmp_path / "ours.st", "--to", "safetensors")
    with safe_open(tmp_path / "ours.st", "pt") as ours:
        for name, tensor in state_dict_of(loaded).items():
            assert torch.equal(ours.get_tensor(name), tensor), name


def test_tensors_that_an_index_does_not_place_are_read_as_transformers_reads_them_or_refused(
    etstream: Etstream, tmp_path: Path
) -> None:
    family = FAMILIES[0]
    family.pretrained().save_pretrained(tmp_path, max_shard_size="60KB")
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    before, home, behind, *_ = sorted(tmp_path.glob("model-*.safetensors"))
    name, tensor = sorted(load_file(home).items())[0]

    def is_read(other: Path, added: int, listed: bool) -> bool:
        """Returns whether the checkpoint is read, as transformers does, if `other` too has the tensor."""
        kept = other.read_bytes()
        save_file(load_file(other) | {name: tensor + added}, other, {"format": "pt"})
        places = {key: shard for key, shard in content["weight_map"].items() if listed or key != name}
        index.write_text(json.dumps(content | {"weight_map": places}))
        outcome = etstream.attempt("ptd", tmp_path, "-o", tmp_path / "ours.st", "--to", "safetensors")
        if outcome.code == 0:
            loaded = state_dict_of(AutoModelForCausalLM.from_pretrained(tmp_path))
            assert torch.equal(loaded[name], load_file(tmp_path / "ours.st")[name])
        other.write_bytes(kept)
        return outcome.code == 0

    assert is_read(before, 1, True)
    assert not is_read(behind, 1, True)
    assert is_read(behind, 0, True)
    assert is_read(home, 0, False)
    assert not is_read(before, 1, False)
