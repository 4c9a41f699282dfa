# SPDX-License-Identifier: BSD-3-Clause
"""Measures packing and unpacking against zstd and ZipNN on weights, and against cp on bytes that can't be packed.

    ETSTREAM=PATH python packed.py [--quick] SCRATCH_FOLDER

Each tool has one thread. Speeds are original bytes in a second of its processor time, which includes reading and
writing the files; other processes change that less than the time from start to end. ZipNN, a Python library, works in
memory, and its time is that alone. It is installed in the folder, if a C compiler is there.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import measure
from measure import MIB, Time
from packed_inputs import inputs, installed
from table import rows_of, show, show_limit, yes

ETSTREAM = os.environ["ETSTREAM"]
WORKER = Path(__file__).with_name("zipnn_worker.py")
ZIPNN = "zipnn==0.5.4"
ZIPNN_TYPES = {"bf16": "bfloat16", "random bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}

MOST_RATIO = {"bf16": 0.668, "fp32": 0.836, "8da4w, groups of 32": 0.935}
LEAST_SPEED = {"bf16": 2.0}
"""What to reach: the part of the size that is left, and how many times the speed of zstd -1, both ways."""
STORED = 1 << 30  # the size of the random bytes
QUICK = 256 << 20
MOST_MEMORY = 20.0  # MiB, with one thread


@dataclass
class Coder:
    """A tool that packs and unpacks, and the processor times that it took for one file."""

    name: str
    pack: Sequence[str]  # without the input, "-o" and the output
    unpack: Sequence[str]
    packed_size: int = 0
    packing: list[float] = field(default_factory=list)
    unpacking: list[float] = field(default_factory=list)

    def run(self, original: Path, folder: Path) -> None:
        """Packs and unpacks once, with the input in the page cache and nothing else to write to the disk."""
        packed, restored = folder / "packed", folder / "restored"
        for command, source, output, times in (
            (self.pack, original, packed, self.packing),
            (self.unpack, packed, restored, self.unpacking),
        ):
            os.sync()
            subprocess.run(["cat", str(source)], stdout=subprocess.DEVNULL, check=True)
            times.append(measure.timed([*command, str(source), "-o", str(output)]).cpu)
        self.packed_size = packed.stat().st_size
        assert filecmp.cmp(original, restored, shallow=False), f"{self.name}: {original}"
        packed.unlink()
        restored.unlink()


def zipnn(library: Path, dtype: str, original: Path, rounds: int) -> Coder:
    """Returns the figures of ZipNN, by a process of Python that has it."""
    done = subprocess.run(
        [sys.executable, str(WORKER), dtype, str(original), str(rounds)],
        env={**os.environ, "PYTHONPATH": str(library)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    packing, unpacking = ([float(line[i]) for line in lines] for i in (1, 2))
    return Coder("ZipNN, in memory", [], [], int(lines[0][0]), packing, unpacking)


def coders() -> list[Coder]:
    one = ["--threads", "1", "--no-sync"]
    unpack = ["zstd", "-d", "--quiet", "--single-thread"]
    return [
        Coder("etstream", [ETSTREAM, "pack", *one], [ETSTREAM, "unpack", *one]),
        Coder("zstd -1", ["zstd", "-1", "--quiet", "--single-thread"], unpack),
    ]


def compare(name: str, original: Path, folder: Path, library: Path | None, rounds: int) -> bool:
    """Compares the tools on one file, in turn, and returns whether every target was reached."""
    own, other = measured = coders()
    for _ in range(rounds):
        for coder in (own, other):
            coder.run(original, folder)
    if library and name in ZIPNN_TYPES:
        measured.append(zipnn(library, ZIPNN_TYPES[name], original, rounds))
    measured.append(Coder("zstd -19", ["zstd", "-19", "--quiet", "--single-thread"], other.unpack))
    measured[-1].run(original, folder)

    size = original.stat().st_size
    print(f"\n{name}, {size / MIB:.0f} MiB")
    print(f"{'':<20} {'ratio':>8} {'pack MB/s':>10} {'unpack MB/s':>12}")
    for coder in measured:
        speeds = (size / 1e6 / median(times) for times in (coder.packing, coder.unpacking))
        print("{:<20} {:>8.4f} {:>10.0f} {:>12.0f}".format(coder.name, coder.packed_size / size, *speeds), flush=True)
    if name not in ZIPNN_TYPES:
        print("ZipNN has no such type")
    reached = True
    if name in MOST_RATIO:
        ratio, most = own.packed_size / size, MOST_RATIO[name]
        print(f"ratio: {ratio:.4f}, to reach: {most:g} {yes(ratio <= most)}")
        reached = ratio <= most
    for what, times, others in (
        ("packing", own.packing, other.packing),
        ("unpacking", own.unpacking, other.unpacking),
    ):
        ratio = median([b / a for a, b in zip(times, others, strict=True)])
        least = LEAST_SPEED.get(name)
        verdict = f", to reach: {least:g} {yes(ratio >= least)}" if least else ""
        print(f"{what}: {ratio:.2f} times the speed of zstd -1{verdict}", flush=True)
        reached = reached and (least is None or ratio >= least)
    return reached


def median(values: Sequence[float]) -> float:
    return measure.median([Time(0, value) for value in values]).cpu


def compare_stored(folder: Path, size: int, rounds: int) -> bool:
    """Compares packing and unpacking random bytes with copying them."""
    original, packed, out = folder / "random", folder / "random.etz", folder / "out"
    source = random.Random(1)
    with original.open("wb") as file:
        for _ in range(size // MIB):
            file.write(source.randbytes(MIB))
    subprocess.run([ETSTREAM, "pack", original, "-o", packed], stdout=subprocess.DEVNULL, check=True)
    pack = [ETSTREAM, "pack", str(original), "-o", str(out)]
    unpack = [ETSTREAM, "unpack", str(packed), "-o", str(out)]
    copy = ["cp", str(original), str(out)]

    def timed(command: list[str], sync: Path | None = None) -> Callable[[], Time]:
        def run() -> Time:
            out.unlink(missing_ok=True)
            os.sync()
            subprocess.run(["cat", original, packed], stdout=subprocess.DEVNULL, check=True)
            return measure.timed(command, sync)

        return run

    one = ["--threads", "1"]
    contenders = {
        "pack": timed(pack),
        "unpack": timed(unpack),
        "cp, sync": timed(copy, out),
        "pack --no-sync": timed([*pack, "--no-sync"]),
        "unpack --no-sync": timed([*unpack, "--no-sync"]),
        "cp": timed(copy),
        "pack, one thread": timed([*pack, "--no-sync", *one]),
        "unpack, one thread": timed([*unpack, "--no-sync", *one]),
    }
    times = measure.rounds(rounds, contenders)
    peaks = {"pack": measure.peak_of([*pack, *one]), "unpack": measure.peak_of([*unpack, *one])}
    reached = True
    for own in ("pack", "unpack"):
        compared = {name: runs for name, runs in times.items() if name.startswith((own, "cp"))}
        against = {"cp, sync": (own, 1.0), "cp": (f"{own} --no-sync", 1.0)}
        title = f"{own}, random bytes, {size // MIB} MiB"
        reached = show(title, rows_of(compared, against, peaks)) and reached
        memory = peaks[own].anonymous / MIB
        reached = show_limit(f"memory of {own} --threads 1", memory, MOST_MEMORY, "MiB") and reached
    return reached


def zipnn_library(folder: Path) -> Path | None:
    """Returns the folder with ZipNN; nothing, and says so, if it can't be installed."""
    try:
        return installed(ZIPNN, folder / "zipnn")
    except subprocess.CalledProcessError as error:
        print(f"NOT MEASURED: ZipNN, which pip could not install: it ended with {error.returncode}")
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="three rounds, 256 MiB of random bytes")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    size, rounds = (QUICK, 3) if arguments.quick else (STORED, 9)
    if shutil.disk_usage(arguments.folder).free < 4 * size + (2 << 30):
        print(f"{arguments.folder} has less than {(4 * size >> 30) + 2} GiB free", file=sys.stderr)
        return 1
    library = zipnn_library(arguments.folder)
    files = inputs(arguments.folder / "packed-inputs")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder = Path(scratch)
        reached = [compare(name, file, folder, library, rounds) for name, file in files.items()]
        reached.append(compare_stored(folder, size, rounds))
    print("\nall targets reached" if all(reached) else "\nsome targets were missed, see NO above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
