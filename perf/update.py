# SPDX-License-Identifier: BSD-3-Clause
"""Measures updates between two versions of a model, against what makes an update of any two files.

    ETSTREAM=PATH python update.py [--quick] SCRATCH_FOLDER

The pairs are made from the weights of MiniLM: all weights moved by a random step, in proportion to the deviation of
each tensor; a LoRA of rank 8 merged into the attention; one layer moved; the same weights under another layout. Those
in 8da4w are programs for XNNPACK, which reweight makes. XOR
planes are what is left of two tensors by XOR, in planes of bytes, each coded by zstd. bsdiff takes 17 times the
memory of a file, and is measured on files of up to 64 MiB, if it is installed. The speed is bytes of the new file in
a second of the time from start to end, with the default number of threads and without a sync.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np
import torch
from measure import MIB
from packed_inputs import inputs
from safetensors.torch import load_file, save_file
from table import yes

ETSTREAM = os.environ["ETSTREAM"]
MOST_BSDIFF = 64 * MIB
MOST_OF_XOR = 0.92  # of XOR planes, in bfloat16
LEAST_SPEED = 500.0  # MB/s of applying
STEPS = {"small step": 0.00015, "larger step": 0.001, "large step": 0.005}
"""Parts of a tensor's standard deviation. About 8 % of the values in bfloat16 change by the first."""
Tensors = dict[str, torch.Tensor]


@dataclass
class Pair:
    """Two versions of a file. `width` is the size of its elements, where both have the same layout."""

    name: str
    old: Path
    new: Path
    width: int = 0


def moved(weights: Tensors, step: float, part: str = "") -> Tensors:
    """Returns the weights with a random step for each whose name contains `part`."""
    generator = torch.Generator().manual_seed(1)

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor + step * tensor.std() * torch.randn(tensor.shape, generator=generator)

    return {name: move(t) if t.is_floating_point() and part in name else t for name, t in weights.items()}


def with_lora(weights: Tensors) -> Tensors:
    """Returns the weights with a product of two matrices of rank 8 added to each query and value."""
    generator = torch.Generator().manual_seed(2)
    out = dict(weights)
    for name, tensor in weights.items():
        if name.endswith(("query.weight", "value.weight")):
            down, up = (
                torch.randn(shape, generator=generator) for shape in ((8, tensor.shape[1]), (tensor.shape[0], 8))
            )
            out[name] = tensor + 0.01 * tensor.std() * (up @ down)
    return out


def pairs(cache: Path, folder: Path) -> list[Pair]:
    files = inputs(cache)
    weights = load_file(files["fp32"])
    changes: dict[str, Callable[[], Tensors]] = {
        name: lambda step=step: moved(weights, step) for name, step in STEPS.items()
    }
    changes["LoRA"] = lambda: with_lora(weights)
    changes["one layer"] = lambda: moved(weights, 0.01, "layer.3.")
    out = []
    for dtype, kind in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        old = folder / f"old-{dtype}.safetensors"
        save(weights, kind, old)
        for name, change in changes.items():
            new = folder / f"{name}-{dtype}.safetensors".replace(" ", "-")
            save(change(), kind, new)
            out.append(Pair(f"{name}, {dtype}", old, new, kind.itemsize))
        ptd = folder / f"layout-{dtype}.ptd"
        quietly(ETSTREAM, "ptd", out[-5].new, "-o", ptd)
        out.append(Pair(f"small step, as .ptd, {dtype}", old, ptd))
    program = files["8da4w, groups of 32"]
    for name in changes:
        was, now = folder / "old-fp32.safetensors", folder / f"{name}-fp32.safetensors".replace(" ", "-")
        new = folder / f"{name}-8da4w.pte".replace(" ", "-")
        quietly(ETSTREAM, "reweight", program, "--was", was, "--now", now, "-o", new)
        out.append(Pair(f"{name}, 8da4w", program, new))
    without, constants = folder / "without.pte", folder / "constants.ptd"
    quietly(ETSTREAM, "pte", program, "--constants-to", constants, "-o", without)
    out.append(Pair("constants moved out, 8da4w", program, constants))
    return out


def save(weights: Tensors, kind: torch.dtype, to: Path) -> None:
    save_file({name: t.to(kind) if t.is_floating_point() else t for name, t in weights.items()}, to)


def quietly(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def xor_planes(pair: Pair, level: int, folder: Path) -> int:
    """Returns the size of the planes of bytes of one file by XOR with the other, each coded by itself."""
    old, new = (np.fromfile(path, np.uint8) for path in (pair.old, pair.new))
    assert old.size == new.size, pair.name
    bits = np.bitwise_xor(old, new)
    total = 0
    begin = bits.size % pair.width  # tensors end where files do
    for plane in range(pair.width):
        path = folder / "plane"
        bits[begin + plane :: pair.width].tofile(path)
        total += coded_by_zstd(path, [f"-{level}"])
    return total + begin


def coded_by_zstd(path: Path, options: Sequence[str]) -> int:
    out = path.with_suffix(".zst")
    quietly("zstd", "--quiet", "--force", "-T1", *options, path, "-o", out)
    return out.stat().st_size


def compare(pair: Pair, folder: Path, rounds: int) -> bool:
    """Compares the sizes of updates, and returns whether every target was reached."""
    size = pair.new.stat().st_size
    update, restored = folder / "update.etz", folder / "restored"
    quietly(ETSTREAM, "pack", pair.new, "--base", pair.old, "-o", update, "--no-sync")
    unpack = [ETSTREAM, "unpack", str(update), "--base", str(pair.old), "-o", str(restored), "--no-sync"]
    times = []
    for _ in range(rounds):
        restored.unlink(missing_ok=True)
        quietly("cat", update, pair.old)
        times.append(measure.timed(unpack))
    assert filecmp.cmp(pair.new, restored, shallow=False), pair.name
    sizes = {"etstream": update.stat().st_size}
    quietly(ETSTREAM, "pack", pair.new, "-o", folder / "alone.etz", "--no-sync")
    sizes["pack, no base"] = (folder / "alone.etz").stat().st_size
    sizes["zstd -19 --patch-from"] = coded_by_zstd(pair.new, ["-19", "--long=27", f"--patch-from={pair.old}"])
    if pair.width:
        for level in (3, 19):
            sizes[f"XOR planes, zstd -{level}"] = xor_planes(pair, level, folder)
    if shutil.which("bsdiff") and size <= MOST_BSDIFF:
        quietly("bsdiff", pair.old, pair.new, folder / "bsdiff")
        sizes["bsdiff"] = (folder / "bsdiff").stat().st_size

    print(f"\n{pair.name}, {size / MIB:.0f} MiB")
    for name, found in sizes.items():
        print(f"{name:<24} {found / size:>8.4f}", flush=True)
    own = sizes.pop("etstream")
    smallest = min(sizes, key=lambda name: sizes[name])
    reached = own < sizes[smallest]
    print(f"smaller than {smallest}, the best of the others: {own / sizes[smallest]:.3f} {yes(reached)}")
    if "bf16" in pair.name and pair.width:
        ratio = own / sizes["XOR planes, zstd -3"]
        print(f"of XOR planes: {ratio:.3f}, to reach: {MOST_OF_XOR:g} {yes(ratio <= MOST_OF_XOR)}")
        reached = reached and ratio <= MOST_OF_XOR
    speed = size / 1e6 / measure.median(times).wall
    print(f"applied at {speed:.0f} MB/s, to reach: {LEAST_SPEED:g} {yes(speed >= LEAST_SPEED)}", flush=True)
    return reached and speed >= LEAST_SPEED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="three rounds")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder = Path(scratch)
        made = pairs(arguments.folder / "packed-inputs", folder)
        reached = [compare(pair, folder, 3 if arguments.quick else 9) for pair in made]
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
