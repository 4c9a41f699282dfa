# SPDX-License-Identifier: BSD-3-Clause
"""Writes checkpoints of Llamas to export, in safetensors in the layout of Hugging Face."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

MIB = 1 << 20


def write_checkpoint(
    folder: Path, shape: dict[str, Any], dtype: str, *, sparse: bool = False
) -> None:
    """Writes random weights, a tensor at a time; for a sparse checkpoint, only a few at each tensor's start."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(dtype=dtype, tie_word_embeddings=False, max_position_embeddings=2048, **shape)
    with torch.device("meta"):
        model = LlamaForCausalLM(config).to(getattr(torch, dtype))
    tensors = dict(model.named_parameters())
    header, end = {}, 0
    for name, tensor in tensors.items():
        code = {"bfloat16": "BF16", "float32": "F32"}[dtype]
        header[name] = {"dtype": code, "shape": [*tensor.shape], "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir(parents=True)
    config.save_pretrained(folder)
    generator = torch.Generator().manual_seed(1)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        start = file.tell()
        for name, tensor in tensors.items():
            file.seek(start + header[name]["data_offsets"][0])
            count = min(tensor.numel(), 64) if sparse else tensor.numel()
            for some in range(0, count, MIB):
                values = torch.randn(min(MIB, count - some), generator=generator) * 0.02
                file.write(values.to(tensor.dtype).view(torch.uint8).numpy())
        file.truncate(start + end)


def mapped_read_only(file: Path) -> dict[str, Any]:
    """Returns the tensors of a safetensors file, which can't be written to."""
    import torch

    dtypes = {"BF16": torch.bfloat16, "F32": torch.float32}
    with file.open("rb") as opened:
        start = int.from_bytes(opened.read(8), "little")
        header = json.loads(opened.read(start))
        mapping = mmap.mmap(opened.fileno(), 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            dtype, (begin, end) = dtypes[entry["dtype"]], entry["data_offsets"]
            count = (end - begin) // dtype.itemsize
            flat = torch.frombuffer(mapping, dtype=dtype, count=count, offset=8 + start + begin)
            tensors[name] = flat.reshape(entry["shape"])
    return tensors
