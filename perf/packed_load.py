# SPDX-License-Identifier: BSD-3-Clause
"""Measures loading packed programs, against plain ones: time to load, and to the first output, and peak memory.

    python packed_load.py WEIGHTS.safetensors FOLDER

The programs apply each matrix of WEIGHTS, as float32 and as bfloat16 by ExecuTorch's own kernels, and as float32 by
XNNPACK. Their export takes minutes; those that are in FOLDER are used again. Files
are in the page cache, or are read at 500 MB/s: a reader sleeps in proportion to what it has read. Each load is in a
process of its own; times are medians.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import etstream

MB = 1_000_000
RATE = 500 * MB
AHEAD = 128 << 10
"""The bytes that the system reads ahead, as Linux does by default."""
ROUNDS = 3


class Slow(io.FileIO):
    """A file that gives RATE bytes a second at most."""

    ready = 0.0

    def read(self, size: int = -1, /) -> bytes:
        self.ready = max(self.ready, time.perf_counter() - AHEAD / RATE)
        out = super().read(size)
        self.ready += len(out) / RATE
        time.sleep(max(self.ready - time.perf_counter(), 0))
        return out


def export(weights: Path, dtype: str, backend: str, output: Path) -> None:
    """Writes a program."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    tensors = etstream.Checkpoint(weights).tensors
    matrices = [one.torch() for one in tensors if len(one.sizes) == 2 and one.dtype == "float32"]

    class Matrices(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = torch.nn.ParameterList(one.to(getattr(torch, dtype)) for one in matrices)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = [torch.nn.functional.linear(x[:, : one.shape[1]], one).sum(dim=1) for one in self.all]
            return torch.stack(out).sum(dim=0)

    width = max(one.shape[1] for one in matrices)
    exported = torch.export.export(Matrices().eval(), (torch.ones(1, width, dtype=getattr(torch, dtype)),))
    partitioners = [XnnpackPartitioner()] if backend == "xnnpack" else []
    to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch().save(os.fspath(output))


def peak() -> int:
    """Returns the peak of the process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def load_once(path: Path, is_slow: bool) -> None:
    """Loads a program, and prints what that takes."""
    import executorch.extension.pybindings.portable_lib  # noqa: F401 it is loaded before the clock starts
    import torch
    from etstream.executorch import load

    (tensor,) = etstream.inspect(path).methods[0].inputs
    dtype, _, sizes = tensor.partition(" ")
    inputs = [torch.ones(json.loads(sizes), dtype=getattr(torch, dtype))]
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, start = peak(), time.perf_counter()
    loaded = load(Slow(path) if is_slow else path)
    after_load = time.perf_counter() - start
    (output,) = loaded.run(inputs)
    after_run = time.perf_counter() - start
    print(json.dumps({"load": after_load, "run": after_run, "peak": peak() - before, "output": output.tolist()}))


def measured(path: Path, is_slow: bool) -> dict[str, float]:
    """Returns the medians of several loads."""
    command = [sys.executable, __file__, "--load", str(path), *(["--slow"] if is_slow else [])]
    runs = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(ROUNDS)]
    return {key: statistics.median(run[key] for run in runs) for key in ("load", "run", "peak")} | {
        "output": runs[0]["output"]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, nargs="?")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--slow", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        load_once(arguments.load, arguments.slow)
        return 0
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{'':32}{'MB':>8}{'warm: load':>12}{'output':>10}{'peak MB':>10}{'500 MB/s: load':>18}{'output':>10}")
    faster = True
    for backend, dtype in (("portable", "float32"), ("portable", "bfloat16"), ("xnnpack", "float32")):
        plain = arguments.folder / f"{backend}-{dtype}.pte"
        if not plain.exists():
            export(arguments.weights, dtype, backend, plain)
        etstream.pack(plain, f"{plain}.etz", sync=False)
        slow = {}
        for path in (plain, Path(f"{plain}.etz")):
            warm, slow[path] = measured(path, False), measured(path, True)
            print(
                f"{path.name:32}{path.stat().st_size / MB:8.1f}{warm['load'] * 1e3:9.0f} ms"
                f"{warm['run'] * 1e3:7.0f} ms{warm['peak'] / MB:10.1f}"
                f"{slow[path]['load'] * 1e3:15.0f} ms{slow[path]['run'] * 1e3:7.0f} ms",
                flush=True,
            )
            assert warm["output"] == slow[path]["output"] == slow[plain]["output"]
        faster = faster and slow[path]["load"] < slow[plain]["load"]
    print(f"\n{'each' if faster else 'NO: not each'} packed program loads faster at 500 MB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
