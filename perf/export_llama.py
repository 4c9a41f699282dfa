# SPDX-License-Identifier: BSD-3-Clause
"""What exporting a Llama from safetensors takes in memory, with low_memory_export() and without.

    python perf/export_llama.py SCRATCH_FOLDER [--quick] [--large]

Prints a table by phase, compares the programs, and says whether the targets are reached. The folder needs
25 GB, the machine 12 GiB of memory. --quick takes a small model. --large instead exports one of over 8 GiB,
whose weights lie in a sparse file, under a limit of 2 GiB; that needs 30 GB on the disk. For the portable
kernels the operating system sees to the limit (RLIMIT_DATA: private memory that can be written to, where
safetensors' mappings would count, so the weights are mapped read-only). Lowering copies weights, if only on
write, which would count too: for XNNPACK the process is killed once it has 2 GiB of anonymous memory.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import json
import mmap
import os
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from etstream.memory import Phases

MIB = 1 << 20
LIMIT = 2048 * MIB
TARGETS = {"portable": (128 * MIB, 256 * MIB), "xnnpack": (256 * MIB, 256 * MIB)}
"""Most anonymous and resident bytes above the imports."""
DTYPES = {"portable": "bfloat16", "xnnpack": "float32"}
"""XNNPACK's partitioner leaves matrices of bfloat16 to the portable kernels."""
MODELS: dict[str, dict[str, Any]] = {
    "quick": {
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,
        "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
    },
    # The shape of Llama 3.2 1B.
    "1.2B": {
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    },
    # Few nodes with many weights; in bfloat16 over 8 GiB, in float32 with half the layers too.
    "large": {
        "hidden_size": 4096, "intermediate_size": 65536, "num_hidden_layers": 4,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    },
}  # fmt: skip


def write_checkpoint(
    folder: Path, shape: dict[str, Any], dtype: str, *, sparse: bool = False, tied: bool = False
) -> None:
    """Random weights, a tensor at a time; of a sparse one only a few at each tensor's start."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(dtype=dtype, tie_word_embeddings=tied, max_position_embeddings=2048, **shape)
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
    """The tensors of a safetensors file, which can't be written to."""
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


def export(checkpoint: Path, target: str, low: bool, output: Path, data_limit: int) -> None:
    if data_limit:
        resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit))
    memory = Phases()
    with memory.phase("imports"):
        import torch
        from etstream.executorch import low_memory_export
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge, to_edge_transform_and_lower
        from transformers import LlamaConfig, LlamaForCausalLM

    def load() -> LlamaForCausalLM:
        if not data_limit:
            return LlamaForCausalLM.from_pretrained(checkpoint, dtype="auto")
        tensors = mapped_read_only(checkpoint / "model.safetensors")
        config = LlamaConfig.from_pretrained(checkpoint)
        return LlamaForCausalLM.from_pretrained(None, config=config, state_dict=tensors, dtype="auto")

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.llama = load().eval()

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.llama(tokens, use_cache=False, return_dict=True).logits

    with contextlib.ExitStack() as stack, torch.no_grad():
        # Also of an export that fails.
        stack.callback(lambda: print(memory, flush=True))
        if low:
            stack.enter_context(low_memory_export(output.parent))
        with memory.phase("load"):
            model = Logits()
        with memory.phase("export"):
            graph = torch.export.export(model, (torch.arange(8).reshape(1, 8),))
        with memory.phase("to_edge" if target == "portable" else "lower"):
            if target == "portable":
                edge = to_edge(graph)
            else:
                edge = to_edge_transform_and_lower(graph, partitioner=[XnnpackPartitioner()])
            del graph
        with memory.phase("to_executorch"):
            program = edge.to_executorch()
        with memory.phase("save"), output.open("wb") as file:
            program.write_to_file(file)
    for bytes_over, most, kind in zip(
        (max(getattr(p.peak, kind) for p in memory.finished) - getattr(memory["imports"].peak, kind)
         for kind in ("anonymous", "resident")),
        TARGETS[target],
        ("anonymous", "resident"),
        strict=True,
    ):  # fmt: skip
        verdict = "yes" if bytes_over <= most else "NO"
        print(f"{kind} above the imports: {bytes_over >> 20} MiB, to reach: {most >> 20} {verdict}")


def run(arguments: list[str], limit: int | None = None) -> str:
    """How the process ended, which is killed if it comes to the limit of anonymous memory."""
    command = [sys.executable, "-W", "ignore", __file__, *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    messages = []
    reader = threading.Thread(target=lambda: messages.extend(process.stderr or ()))
    reader.start()
    while process.poll() is None:
        if limit is not None and anonymous(process.pid) > limit:
            process.kill()
            process.wait()
        time.sleep(0.001)
    reader.join()
    if process.returncode > 0:
        # The first is the cause of those that follow.
        errors = [line.strip() for line in messages if re.match(r"[\w.]+Error", line)]
        return f"ended with {errors[0] if errors else process.returncode}"
    return "went through" if process.returncode == 0 else f"was killed by signal {-process.returncode}"


def anonymous(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


def compare(folder: Path, shape: str, target: str, limit: int | None) -> None:
    checkpoint, sparse = folder / f"{shape}-{target}", shape == "large"
    if not checkpoint.exists():
        size = dict(MODELS[shape])
        if sparse and target == "xnnpack":
            size["num_hidden_layers"] //= 2
        write_checkpoint(checkpoint, size, DTYPES[target], sparse=sparse, tied=not sparse)
    weights = (checkpoint / "model.safetensors").stat()
    outputs = []
    for mode in ("low", "upstream"):
        print(
            f"\n{shape}, {target}, {mode}: weights of {weights.st_size / MIB:.0f} MiB, "
            f"{weights.st_blocks * 512 / MIB:.0f} on the disk",
            flush=True,
        )
        outputs.append(folder / f"{mode}.pte")
        data_limit = limit if limit is not None and target == "portable" else 0
        ended = run(["--export", str(checkpoint), target, mode, str(outputs[-1]), str(data_limit)], limit)
        if limit is not None:
            kind = "RLIMIT_DATA" if data_limit else "anonymous memory"
            print(f"under a limit of {limit >> 20} MiB of {kind}: it {ended}", flush=True)
        elif ended != "went through":
            raise SystemExit(f"it {ended}")
    if limit is None:
        same = filecmp.cmp(*outputs, shallow=False)
        print(f"the same {outputs[0].stat().st_size} bytes: {'yes' if same else 'NO'}", flush=True)
    for output in outputs:
        output.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--export", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.export:
        checkpoint, target, mode, output, data_limit = options.export
        return export(Path(checkpoint), target, mode == "low", Path(output), int(data_limit))
    os.makedirs(options.folder, exist_ok=True)
    shape = "large" if options.large else "quick" if options.quick else "1.2B"
    for target in options.target or TARGETS:
        compare(options.folder, shape, target, LIMIT if options.large else None)


if __name__ == "__main__":
    main()
