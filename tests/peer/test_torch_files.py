# SPDX-License-Identifier: BSD-3-Clause
"""torch.load reads what etstream writes, and etstream reads what torch.save writes, and never executes a pickle."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
import torch
from command import Etstream
from safetensors.torch import save_file

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.float8_e4m3fn,
    torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu,
]  # fmt: skip


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    def alike(a: torch.Tensor, b: torch.Tensor) -> bool:
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits_of(a), bits_of(b))

    return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)


def random_tensors() -> dict[str, torch.Tensor]:
    """One of each type, and of each number of dimensions."""
    generator = torch.Generator().manual_seed(7)
    tensors = {}
    for i, dtype in enumerate(DTYPES):
        shape = [(), (0, 3), (5,), (2, 3), (2, 1, 4), (1, 2, 3, 2)][i % 6]
        size = max(torch.Size(shape).numel(), 0) * dtype.itemsize
        high = 2 if dtype is torch.bool else 256
        data = torch.randint(0, high, (size,), dtype=torch.uint8, generator=generator)
        tensors[f"layer.{i}.größe"] = data.view(dtype).reshape(shape)
    return tensors


def pickle_in(file: Path | io.BytesIO) -> bytes:
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        return archive.read(name)


@pytest.mark.parametrize("mmap", [True, False])
def test_torch_loads_tensors_of_all_types(etstream: Etstream, tmp_path: Path, mmap: bool) -> None:
    save_file(random_tensors(), tmp_path / "in.safetensors")
    etstream.ptd([tmp_path / "in.safetensors"], tmp_path / "out.pth", "--to", "pth")
    loaded = torch.load(tmp_path / "out.pth", weights_only=True, mmap=mmap)
    tensors = random_tensors()
    assert same({name: loaded[name] for name in tensors}, tensors)
    with zipfile.ZipFile(tmp_path / "out.pth") as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize("count", [0, 1, 2, 40, 999, 1000, 1001, 2000])
def test_the_pickle_is_the_one_that_torch_writes(etstream: Etstream, tmp_path: Path, count: int) -> None:
    shapes = [(), (1,), (0, 300), (2, 1, 0, 70000)]
    tensors = {f"layers.{i}.weight": torch.full(shapes[i % 4], i).float() for i in range(count)}
    save_file(tensors, tmp_path / "in.safetensors")
    etstream.ptd([tmp_path / "in.safetensors"], tmp_path / "out.pth", "--to", "pth")
    loaded = torch.load(tmp_path / "out.pth", weights_only=True)
    assert len(loaded) == count
    again = io.BytesIO()
    torch.save(loaded, again)
    assert pickle_in(again) == pickle_in(tmp_path / "out.pth")


def test_tensors_that_share_bytes_share_a_storage(etstream: Etstream, tmp_path: Path) -> None:
    tensor = torch.arange(1 << 16, dtype=torch.float32).reshape(256, 256)
    save_file({"model.embed_tokens.weight": tensor}, tmp_path / "in.safetensors")
    out = tmp_path / "out.pth"
    etstream.ptd([tmp_path / "in.safetensors"], out, "--map", "smollm3", "--to", "pth")
    loaded = torch.load(out, weights_only=True)
    assert sorted(loaded) == ["output.weight", "tok_embeddings.weight"]
    assert len({one.untyped_storage().data_ptr() for one in loaded.values()}) == 1
    assert all(torch.equal(one, tensor) for one in loaded.values())
    assert out.stat().st_size < 1.1 * tensor.nbytes
