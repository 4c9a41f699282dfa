# SPDX-License-Identifier: BSD-3-Clause
"""Tensor data (.ptd) made from checkpoints is what ExecuTorch's serializer writes of the same tensors."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from command import Etstream, assert_same_bytes
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
from executorch.exir.schema import ScalarType
from executorch.exir.tensor_layout import TensorLayout
from executorch.extension.flat_tensor.serialize.serialize import (
    FlatTensorConfig,
    FlatTensorSerializer,
)
from safetensors.torch import load_file, save, save_file
from transformers import LlamaConfig, LlamaForCausalLM

Tensors = dict[str, torch.Tensor]

SCALAR_TYPES = {
    torch.bool: ScalarType.BOOL,
    torch.uint8: ScalarType.BYTE,
    torch.int8: ScalarType.CHAR,
    torch.uint16: ScalarType.UINT16,
    torch.int16: ScalarType.SHORT,
    torch.uint32: ScalarType.UINT32,
    torch.int32: ScalarType.INT,
    torch.uint64: ScalarType.UINT64,
    torch.int64: ScalarType.LONG,
    torch.float16: ScalarType.HALF,
    torch.bfloat16: ScalarType.BFLOAT16,
    torch.float32: ScalarType.FLOAT,
    torch.float64: ScalarType.DOUBLE,
    torch.float8_e5m2: ScalarType.FLOAT8E5M2,
    torch.float8_e4m3fn: ScalarType.FLOAT8E4M3FN,
    torch.float8_e5m2fnuz: ScalarType.FLOAT8E5M2FNUZ,
    torch.float8_e4m3fnuz: ScalarType.FLOAT8E4M3FNUZ,
}


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def random_tensor(seed: random.Random, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """Returns a tensor with any bits of the type, NaNs too."""
    count = torch.Size(shape).numel()
    data = bytearray(seed.randbytes(count * dtype.itemsize))
    if dtype == torch.bool:
        data = bytearray(byte & 1 for byte in data)
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


def random_tensors(seed: random.Random, count: int) -> Tensors:
    """Returns tensors of every type and many shapes, some of which have the same bytes."""
    tensors: Tensors = {}
    for i in range(count):
        dtype = list(SCALAR_TYPES)[i % len(SCALAR_TYPES)]
        shape = [seed.randrange(5) for _ in range(seed.randrange(4))]
        name = seed.choice(["layers.{}.weight", "größe {}\n", 'with "quotes" \\ {}', "{}"]).format(i)
        tensors[name] = random_tensor(seed, dtype, shape)
        if i % 7 == 3:
            tensors[f"{name} again"] = tensors[name].clone()
    return tensors


def in_file_order(file: Path) -> list[str]:
    """Returns the names in a safetensors file, by where their bytes lie."""
    content = file.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    header.pop("__metadata__", None)
    return sorted(header, key=lambda name: header[name]["data_offsets"])


def executorchs(tensors: Tensors, names: list[str], share: bool, alignment: int = 128) -> bytes:
    """Returns what ExecuTorch's serializer writes of these tensors in this order."""
    buffers: list[bytes] = []
    entries: dict[str, DataEntry] = {}
    for name in names:
        tensor = tensors[name]
        data = bytes_of(tensor)
        if not share or data not in buffers:
            buffers.append(data)
        number = buffers.index(data) if share else len(buffers) - 1
        layout = TensorLayout(
            SCALAR_TYPES[tensor.dtype], list(tensor.shape), list(range(tensor.dim()))
        )
        entries[name] = DataEntry(number, 1, layout)
    config = FlatTensorConfig(segment_alignment=alignment)
    return bytes(FlatTensorSerializer(config).serialize(DataPayload(buffers, entries)))


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[Path, Tensors]:
    """Writes a safetensors file with tensors of every type."""
    tensors = random_tensors(random.Random(8), 60)
    file = tmp_path / "mixed.safetensors"
    save_file(tensors, file)
    return file, tensors


@pytest.mark.parametrize("alignment", [16, 128, 4096])
def test_safetensors_become_what_executorch_writes(
    mixed: tuple[Path, Tensors], etstream: Etstream, tmp_path: Path, alignment: int
) -> None:
    file, tensors = mixed
    names = in_file_order(file)
    for share, options in [(True, ()), (False, ("--no-dedup",))]:
        ours = etstream.ptd(
            [file], tmp_path / "out.ptd", "--segment-alignment", str(alignment), *options
        )
        expected = executorchs(tensors, names, share, alignment)
        assert_same_bytes(ours, expected, f"alignment {alignment}, sharing {share}")


def test_named_data_becomes_the_safetensors_that_it_came_from(
    mixed: tuple[Path, Tensors], etstream: Etstream, tmp_path: Path
) -> None:
    file, tensors = mixed
    etstream.ptd([file], tmp_path / "there.ptd")
    back = etstream.ptd(
        [tmp_path / "there.ptd"], tmp_path / "back.safetensors", "--to", "safetensors"
    )
    assert_same_bytes(back, save(tensors, metadata={"format": "pt"}), "back.safetensors")
    for name, tensor in load_file(tmp_path / "back.safetensors").items():
        assert bytes_of(tensor) == bytes_of(tensors[name])


def test_shards_are_read_by_their_index(etstream: Etstream, tmp_path: Path) -> None:
    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=300,
    )
    model = LlamaForCausalLM(config)
    model.save_pretrained(tmp_path, max_shard_size="200KB")
    index = tmp_path / "model.safetensors.index.json"
    shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    assert len(shards) > 2
    tensors: Tensors = {}
    for shard in shards:
        tensors |= {name: load_file(tmp_path / shard)[name] for name in in_file_order(tmp_path / shard)}
    ours = etstream.ptd([index], tmp_path / "out.ptd")
    assert_same_bytes(ours, executorchs(tensors, list(tensors), share=True), "from shards")
    separately = etstream.ptd([tmp_path / shard for shard in shards], tmp_path / "out.ptd")
    assert_same_bytes(separately, ours, "from the shards without their index")


def test_only_those_that_match_are_taken(
    mixed: tuple[Path, Tensors], etstream: Etstream, tmp_path: Path
) -> None:
    file, tensors = mixed
    names = [name for name in in_file_order(file) if "weight" in name or name.isdigit()]
    ours = etstream.ptd(
        [file], tmp_path / "out.ptd", "--only", "layers.*", "--only", "?", "--only", "??"
    )
    assert 0 < len(names) < len(tensors)
    assert_same_bytes(ours, executorchs(tensors, names, share=True), "--only")


def test_inputs_may_agree_on_a_name_but_not_differ(etstream: Etstream, tmp_path: Path) -> None:
    common = torch.arange(6, dtype=torch.float32)
    save_file({"a": torch.ones(3), "common": common}, tmp_path / "one.safetensors")
    for other, error in [
        (common.clone(), None),
        (common + 1, "other bytes, from byte 2 on"),
        (common.reshape(2, 3), "other layouts: float32 [6] and float32 [2, 3]"),
        (common.to(torch.int32), "other layouts: float32 [6] and int32 [6]"),
    ]:
        save_file({"b": torch.zeros(2), "common": other}, tmp_path / "two.safetensors")
        files = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
        if error is None:
            ours = etstream.ptd(files, tmp_path / "out.ptd")
            tensors = {"a": torch.ones(3), "common": common, "b": torch.zeros(2)}
            assert_same_bytes(ours, executorchs(tensors, list(tensors), share=True), "merged")
            continue
        outcome = etstream.attempt("ptd", *files, "-o", tmp_path / "never.ptd")
        assert outcome.code == 1
        assert error in outcome.stderr
        assert "'common'" in outcome.stderr
        assert str(files[0]) in outcome.stderr and str(files[1]) in outcome.stderr
        assert not (tmp_path / "never.ptd").exists()


FLOATS = [dtype for dtype in SCALAR_TYPES if dtype.is_floating_point]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floating_point_tensors_are_converted_as_torch_converts_them(
    etstream: Etstream, tmp_path: Path, dtype: torch.dtype
) -> None:
    seed = random.Random(str(dtype))
    tensors = {str(source): random_tensor(seed, source, [40_000]) for source in FLOATS}
    # Random bits seldom make numbers that the small types can hold.
    tensors["near one"] = torch.randn(40_000, generator=torch.Generator().manual_seed(1))
    tensors["small"] = tensors["near one"].to(torch.float64) * 2.0**-14
    tensors["integers"] = torch.arange(10)
    save_file(tensors, tmp_path / "in.safetensors")
    name = str(dtype).removeprefix("torch.")
    etstream.ptd([tmp_path / "in.safetensors"], tmp_path / "out.ptd", "--dtype", name)
    etstream.ptd([tmp_path / "out.ptd"], tmp_path / "out.safetensors", "--to", "safetensors")
    ours = load_file(tmp_path / "out.safetensors")
    assert ours.keys() == tensors.keys()
    assert torch.equal(ours.pop("integers"), tensors["integers"])
    for key, converted in ours.items():
        expected = tensors[key].to(dtype)
        assert converted.dtype == dtype
        is_nan = expected.to(torch.float32).isnan()
        assert torch.equal(converted.to(torch.float32).isnan(), is_nan), key
        bits = [each.view(torch.uint8).reshape(is_nan.numel(), -1)[~is_nan] for each in (converted, expected)]
        assert torch.equal(*bits), key


def test_each_tensor_is_converted_by_the_last_rule_that_it_matches(
    etstream: Etstream, tmp_path: Path
) -> None:
    tensors = {"a.weight": torch.randn(5, 3), "a.norm": torch.randn(3), "b": torch.randn(2)}
    save_file(tensors, tmp_path / "in.safetensors")
    expected = {
        "a.norm": tensors["a.norm"],
        "a.weight": tensors["a.weight"].to(torch.float16),
        "b": tensors["b"].to(torch.bfloat16),
    }
    ours = etstream.ptd(
        [tmp_path / "in.safetensors"],
        tmp_path / "out.ptd",
        *("--dtype", "bfloat16", "--dtype", "a.*=float16", "--dtype", "*.norm=float32"),
    )
    assert_same_bytes(ours, executorchs(expected, list(expected), share=True), "--dtype")
