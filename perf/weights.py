# SPDX-License-Identifier: BSD-3-Clause
"""Measures writing tensor data (.ptd) and packages of the native backend (.ptn) from a checkpoint, against cp,
ExecuTorch's serializers, and Python's writers of checkpoints.

    ETSTREAM=PATH python weights.py [--quick] SCRATCH_FOLDER

The others write the same bytes of tensors, from a mapped checkpoint: ExecuTorch a .ptd or a .ptn, safetensors and
gguf-py a checkpoint. Their time is without imports and, like that of cp, without sync. The last table has a million
small tensors.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import measure
from measure import MIB, Time
from table import rows_of, show, show_cache_growth, show_limit

ETSTREAM = os.environ["ETSTREAM"]
WRITER = str(Path(__file__).resolve().parent / "weights_writer.py")
GRAPH = Path(__file__).resolve().parents[1] / "tests" / "golden" / "native_package" / "empty.ptg"
LARGE = 4 << 30
QUICK = 512 << 20
MOST_OF_PACKAGE = 1 << 30  # ExecuTorch's writer fails at 2 GiB
COUNTS = (10_000, 100_000, 1_000_000)
MOST_MEMORY_RATIO = 8.0


def write_checkpoint(path: Path, shapes: list[list[int]], content: Callable[[int], bytes]) -> None:
    header, end = {}, 0
    for i, shape in enumerate(shapes):
        size = 2
        for each in shape:
            size *= each
        header[f"layers.{i:06}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        written = 0
        while written < end:
            piece = content(min(end - written, 16 * MIB))
            file.write(piece)
            written += len(piece)


def quietly(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def written_by(tool: str, checkpoint: Path, out: Path) -> Time:
    """Times a tool in a process that has imported the tool's modules before it is told to begin."""
    with subprocess.Popen(
        [sys.executable, WRITER, tool, str(checkpoint), str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("\n")
        process.stdin.flush()
        wall, cpu = map(float, process.stdout.readline().split())
    return Time(wall, cpu)


def in_rounds(
    rounds: int, checkpoint: Path, out: Path, contenders: Mapping[str, Callable[[], Time]]
) -> dict[str, list[Time]]:
    """Times the contenders, with the checkpoint in the page cache, and no output there."""

    def prepared(run: Callable[[], Time]) -> Callable[[], Time]:
        def prepare_and_run() -> Time:
            out.unlink(missing_ok=True)
            os.sync()
            quietly(["cat", str(checkpoint)])
            return run()

        return prepare_and_run

    return measure.rounds(rounds, {tool: prepared(run) for tool, run in contenders.items()})


def compare(checkpoint: Path, out: Path, rounds: int) -> bool:
    ptd = [ETSTREAM, "ptd", str(checkpoint), "-o", str(out)]
    contenders = {
        "etstream": lambda: measure.timed(ptd),
        "etstream --no-dedup": lambda: measure.timed([*ptd, "--no-dedup"]),
        "cp, sync": lambda: measure.timed(["cp", str(checkpoint), str(out)], out),
        "etstream --no-sync": lambda: measure.timed([*ptd, "--no-sync"]),
        "cp": lambda: measure.timed(["cp", str(checkpoint), str(out)]),
        "--dtype float32": lambda: measure.timed([*ptd, "--dtype", "float32"]),
        "ExecuTorch": lambda: written_by("executorch", checkpoint, out),
        "safetensors": lambda: written_by("safetensors", checkpoint, out),
        "gguf-py": lambda: written_by("gguf", checkpoint, out),
    }
    times = in_rounds(rounds, checkpoint, out, contenders)
    peak = measure.peak_of(ptd)
    against = {
        "cp, sync": ("etstream", 0.95),
        "cp": ("etstream", 0.95),
        "ExecuTorch": ("etstream", 1.0),
        "safetensors": ("etstream", 1.0),
        "gguf-py": ("etstream", 1.0),
    }
    title = f"named data from a safetensors file of {checkpoint.stat().st_size >> 20} MiB"
    reached = show(title, rows_of(times, against, {"etstream": peak}))
    return show_cache_growth("etstream", peak) and reached


def compare_packages(checkpoint: Path, out: Path, rounds: int) -> bool:
    """Compares writers of packages. They read the constants twice, as a member's checksum comes before it."""
    ptn = [ETSTREAM, "ptn", str(GRAPH), "--constants", str(checkpoint), "-o", str(out)]
    contenders = {
        "etstream ptn": lambda: measure.timed(ptn),
        "cp, sync": lambda: measure.timed(["cp", str(checkpoint), str(out)], out),
        "etstream --no-sync": lambda: measure.timed([*ptn, "--no-sync"]),
        "cp": lambda: measure.timed(["cp", str(checkpoint), str(out)]),
        "ExecuTorch": lambda: written_by("package", checkpoint, out),
    }
    times = in_rounds(rounds, checkpoint, out, contenders)
    peak = measure.peak_of(ptn)
    against = {
        "cp, sync": ("etstream ptn", None),
        "cp": ("etstream --no-sync", None),
        "ExecuTorch": ("etstream --no-sync", 1.0),
    }
    title = f"a package of the native backend with {checkpoint.stat().st_size >> 20} MiB of constants"
    reached = show(title, rows_of(times, against, {"etstream ptn": peak}))
    return show_cache_growth("etstream ptn", peak) and reached


def grow(folder: Path) -> bool:
    """Measures time and memory by the number of tensors."""
    checkpoint, out = folder / "many.safetensors", folder / "out.ptd"
    print(f"\n{'tensors':>11} {'seconds':>9} {'us each':>9} {'memory MiB':>11} {'metadata MiB':>13} {'ratio':>6}")
    each: list[float] = []
    for count in COUNTS:
        source = random.Random(count)
        write_checkpoint(checkpoint, [[2 + i % 3] for i in range(count)], source.randbytes)
        command = [ETSTREAM, "ptd", str(checkpoint), "-o", str(out), "--no-sync"]
        seconds = measure.median([measure.timed(command) for _ in range(3)]).wall
        memory = measure.peak_of(command).anonymous
        plan = subprocess.run(
            [ETSTREAM, "inspect", str(out), "--json"], capture_output=True, check=True
        ).stdout
        metadata = next(part["size"] for part in json.loads(plan)["parts"] if part["path"] == "flatbuffer")
        each.append(seconds / count)
        ratio = memory / metadata
        print(
            f"{count:>11} {seconds:>9.2f} {each[-1] * 1e6:>9.1f} {memory / MIB:>11.1f} "
            f"{metadata / MIB:>13.1f} {ratio:>6.1f}",
            flush=True,
        )
    print(f"time is {'linear' if each[-1] <= 2 * each[0] else 'NOT linear'}")
    return show_limit("memory of the last", ratio, MOST_MEMORY_RATIO, "times the metadata") and each[-1] <= 2 * each[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="512 MiB, one round")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else LARGE
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(arguments.folder).free < 4 * size:
        print(f"{arguments.folder} has less than {4 * size >> 30} GiB free", file=sys.stderr)
        return 1
    rounds = 1 if arguments.quick else 3
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        checkpoint, out = Path(scratch, "model.safetensors"), Path(scratch, "out")
        rows, columns = 4096, 8192
        write_checkpoint(checkpoint, [[rows, columns]] * (size // (2 * rows * columns)), random.Random(1).randbytes)
        reached = [compare(checkpoint, out, rounds)]
        shapes = [[rows, columns]] * (min(size, MOST_OF_PACKAGE) // (2 * rows * columns))
        write_checkpoint(checkpoint, shapes, random.Random(1).randbytes)
        reached.append(compare_packages(checkpoint, out, rounds))
        checkpoint.unlink()
        reached.append(grow(Path(scratch)))
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
