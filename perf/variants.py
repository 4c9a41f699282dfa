# SPDX-License-Identifier: BSD-3-Clause
"""Measures updates of programs from the checkpoint that they were exported from, against what makes an update of any
two files. The programs are those of a small transformer and of a small network of convolutions.

    ETSTREAM=PATH python variants.py SCRATCH_FOLDER
"""

from __future__ import annotations

import copy
import filecmp
import os
import sys
import tempfile
from pathlib import Path

import measure
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.exir import to_edge_transform_and_lower
from measure import MIB
from safetensors.torch import save_file
from table import yes
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup
from update import coded_by_zstd, quietly

ETSTREAM = os.environ["ETSTREAM"]
MOST = 0.01  # of the program
LEAST_SPEED = 300.0  # MB/s


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(2048, 256)
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.LayerNorm(256), torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)
            )
            for _ in range(3)
        )
        self.mixers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(3))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.table(ids)
        for layer, mixer in zip(self.layers, self.mixers):
            out = torch.nn.functional.silu(mixer(out + layer(out)))
        return out


class Convolutions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        sizes = [3, 32, 64, 128, 256, 256]
        self.features = torch.nn.Sequential()
        for size, following in zip(sizes, sizes[1:]):
            self.features.append(torch.nn.Conv2d(size, following, 3, 2, 1, bias=False))
            self.features.append(torch.nn.BatchNorm2d(following))
            self.features.append(torch.nn.ReLU())
        self.head = torch.nn.Linear(256, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.features(image).mean((2, 3)))
        return out


def export(net: torch.nn.Module, example: torch.Tensor, partitioners: list[object], to: Path) -> Path:
    with torch.no_grad():
        exported = torch.export.export(net, (example,))
        to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch().save(str(to))
    return to


def programs(folder: Path) -> list[tuple[str, Path, Path]]:
    """Returns names, checkpoints and programs."""
    torch.manual_seed(1)
    out = []
    nets = {"transformer": (Transformer(), torch.arange(32).reshape(1, 32)),
            "convolutions": (Convolutions(), torch.randn(1, 3, 64, 64))}  # fmt: skip
    for name, (net, example) in nets.items():
        if name == "convolutions":
            net(torch.randn(8, 3, 64, 64))  # so that its batch norms do something
        net.eval()
        checkpoint = folder / f"{name}.safetensors"
        save_file({key: each.contiguous() for key, each in net.state_dict().items()}, checkpoint)
        for kind, partitioners in {"portable": [], "XNNPACK": [XnnpackPartitioner()]}.items():
            program = export(copy.deepcopy(net), example, partitioners, folder / f"{name}-{kind}.pte")
            out.append((f"{name}, {kind}, float32", checkpoint, program))
        if name == "transformer":
            quantize_(net, Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32)))
            both = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
            program = export(net, example, both, folder / f"{name}-8da4w.pte")
            out.append((f"{name}, XNNPACK, 8da4w", checkpoint, program))
    return out


def compare(name: str, checkpoint: Path, program: Path, folder: Path) -> bool:
    size = program.stat().st_size
    update, alone, restored = folder / "update.etz", folder / "alone.etz", folder / "restored.pte"
    quietly(ETSTREAM, "pack", program, "--base", checkpoint, "-o", update)
    quietly(ETSTREAM, "pack", program, "-o", alone)
    unpack = [ETSTREAM, "unpack", str(update), "--base", str(checkpoint), "-o", str(restored), "--no-sync"]
    speed = size / 1e6 / measure.median([measure.timed(unpack) for _ in range(9)]).wall
    peak = measure.peak_of(unpack).anonymous
    assert filecmp.cmp(program, restored, shallow=False), name
    zstd = coded_by_zstd(program, ["-19", "--long=27", f"--patch-from={checkpoint}"])
    own = update.stat().st_size / size
    print(f"{name}, {size / MIB:.1f} MiB: {100 * own:.2f} % of the program, packed alone "
          f"{100 * alone.stat().st_size / size:.1f} %, zstd --patch-from {100 * zstd / size:.2f} %, "
          f"restored at {speed:.0f} MB/s in {peak / MIB:.1f} MiB")  # fmt: skip
    reached = own <= MOST and speed >= LEAST_SPEED
    print(f"at most {100 * MOST:g} %, at {LEAST_SPEED:g} MB/s: {yes(reached)}", flush=True)
    return reached


def main() -> int:
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        reached = [compare(*each, Path(folder)) for each in programs(Path(folder))]
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
