# SPDX-License-Identifier: BSD-3-Clause
"""Writes weights as people do in Python, to be measured from outside.

    python weights_writer.py executorch|package|safetensors|gguf CHECKPOINT.safetensors OUT

Imports and maps the checkpoint, then says "ready" and waits for a line; its work from there on is measured. Prints
seconds and CPU seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

Tensors = dict[str, torch.Tensor]
GRAPH = Path(__file__).resolve().parents[1] / "tests" / "golden" / "native_package" / "empty.ptg"


def executorch() -> Callable[[Tensors, Path], None]:
    from executorch.exir._serialize.data_serializer import DataEntry, DataPayload
    from executorch.exir.schema import ScalarType
    from executorch.exir.tensor_layout import TensorLayout
    from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer

    def write(tensors: Tensors, out: Path) -> None:
        buffers, entries = [], {}
        for name, tensor in tensors.items():
            layout = TensorLayout(ScalarType.BFLOAT16, list(tensor.shape), list(range(tensor.dim())))
            entries[name] = DataEntry(len(buffers), 1, layout)
            buffers.append(tensor.view(torch.uint8).numpy().tobytes())
        with out.open("wb") as file:
            FlatTensorSerializer().serialize(DataPayload(buffers, entries)).write_to_file(file)

    return write


def package() -> Callable[[Tensors, Path], None]:
    from executorch.exir._serialize._ptn import write_ptn

    graph = GRAPH.read_bytes()
    return lambda tensors, out: write_ptn(str(out), graph, tensors, mutable_keys=frozenset())


def gguf() -> Callable[[Tensors, Path], None]:
    from gguf import GGMLQuantizationType, GGUFWriter

    def write(tensors: Tensors, out: Path) -> None:
        writer = GGUFWriter(out, "llama")
        for name, tensor in tensors.items():
            data = tensor.view(torch.uint8).numpy()
            writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType.BF16)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    return write


def main() -> None:
    tool, checkpoint, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    writers = {"executorch": executorch, "package": package, "gguf": gguf, "safetensors": lambda: save_file}
    write = writers[tool]()
    with safe_open(checkpoint, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        print("ready", flush=True)
        sys.stdin.readline()
        start, cpu = time.perf_counter(), sum(os.times()[:2])
        write(tensors, out)
        print(time.perf_counter() - start, sum(os.times()[:2]) - cpu, flush=True)


if __name__ == "__main__":
    main()
