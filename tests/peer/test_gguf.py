# SPDX-License-Identifier: BSD-3-Clause
"""GGUF files that gguf-py writes become the tensor data that ExecuTorch's serializer writes of the same tensors."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy
import torch
from command import Etstream, assert_same_bytes
from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
from executorch.exir.tensor_layout import TensorLayout
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from test_ptd import SCALAR_TYPES, bytes_of

PLAIN = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F64": torch.float64,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
}


def plain_tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    tensors = {}
    for i, (name, dtype) in enumerate(PLAIN.items()):
        shape = (i + 1, 4, 32)[: 1 + i % 3]
        tensors[f"blk.{i}.{name}"] = (torch.randn(shape, generator=generator) * 50).to(dtype)
    return tensors


def write(path: Path, tensors: dict[str, torch.Tensor], blocks: dict[str, numpy.ndarray], **options: int) -> None:
    """Writes a file with metadata of many kinds before the tensors, arrays of strings among it."""
    writer = gguf.GGUFWriter(path, "llama", **options)
    writer.add_token_list([f"token {i}" for i in range(1000)])
    writer.add_array("scores", [0.5] * 1000)
    writer.add_block_count(4)
    if not options:  # gguf-py aligns all of several files like this, and says so only in the first
        writer.add_custom_alignment(64)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType[name.rsplit(".", 1)[1]]
        if tensor.dtype == torch.bfloat16:
            writer.add_tensor(name, tensor.view(torch.uint8).numpy(), raw_dtype=kind)
        else:
            writer.add_tensor(name, tensor.numpy(), raw_dtype=kind)
    for name, data in blocks.items():
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def executorchs(tensors: dict[str, torch.Tensor], blocks: dict[str, numpy.ndarray]) -> bytes:
    buffers = [bytes_of(tensor) for tensor in tensors.values()]
    entries = {
        name: DataEntry(
            i, 1, TensorLayout(SCALAR_TYPES[tensor.dtype], list(tensor.shape), list(range(tensor.dim())))
        )
        for i, (name, tensor) in enumerate(tensors.items())
    }
    for name, data in blocks.items():
        entries[name] = DataEntry(len(buffers), 1, None)
        buffers.append(data.tobytes())
    return bytes(FlatTensorSerializer().serialize(DataPayload(buffers, entries)))


def test_plain_types_become_tensors(etstream: Etstream, tmp_path: Path) -> None:
    tensors = plain_tensors()
    write(tmp_path / "model.gguf", tensors, {})
    ours = etstream.ptd([tmp_path / "model.gguf"], tmp_path / "out.ptd")
    assert_same_bytes(ours, executorchs(tensors, {}), "from GGUF")


def test_quantised_blocks_are_opaque_and_only_when_asked(etstream: Etstream, tmp_path: Path) -> None:
    tensors = plain_tensors()
    values = numpy.random.default_rng(1).standard_normal((4, 512), dtype=numpy.float32)
    blocks = {
        name: gguf.quantize(values, gguf.GGMLQuantizationType[name])
        for name in ("Q4_0", "Q8_0", "Q5_1")
    }
    file, out = tmp_path / "model.gguf", tmp_path / "out.ptd"
    write(file, tensors, blocks)
    outcome = etstream.attempt("ptd", file, "-o", out)
    assert outcome.code == 1
    assert "tensor 'Q4_0' is of type Q4_0, which ExecuTorch has no tensors of; --opaque" in outcome.stderr
    assert not out.exists()
    ours = etstream.ptd([file], out, "--opaque")
    assert_same_bytes(ours, executorchs(tensors, blocks), "with blocks")
    only = etstream.ptd([file], out, "--only", "blk.*")
    assert_same_bytes(only, executorchs(tensors, {}), "without blocks")


def test_a_model_over_several_files_is_read_from_the_first(etstream: Etstream, tmp_path: Path) -> None:
    tensors = plain_tensors()
    write(tmp_path / "model.gguf", tensors, {}, split_max_tensors=3)
    first = tmp_path / "model-00001-of-00003.gguf"
    assert first.exists() and not (tmp_path / "model.gguf").exists()
    ours = etstream.ptd([first], tmp_path / "out.ptd")
    assert_same_bytes(ours, executorchs(tensors, {}), "from three files")
