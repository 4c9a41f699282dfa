# SPDX-License-Identifier: BSD-3-Clause
"""Checks ratios that grow when a constant factor does: the processor time of etstream for its work, to that of cp, cat,
xxhsum, zstd, flatc or Python's json for the same bytes.

    ETSTREAM=PATH python quick.py [--renew] SCRATCH_FOLDER

Each pair runs in turn, and the least time of each counts, so that neither the machine nor its other processes count.
The figures go to quick.csv in the folder. The script exits with 1 if one has grown over that in perf/quick.csv, which
--renew replaces.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import measure
from measure import MIB, Time
from segmented import bundle, make_program, quietly
from sharing import write_programs

from fat import write_payloads
from weights import GRAPH, write_checkpoint

ETSTREAM = os.environ["ETSTREAM"]
ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "perf" / "quick.csv"
SIZE = 96 * MIB
CASES = 10_000
TENSORS = 50_000
ROUNDS = 8
MOST_BATCHES = 4  # the most batches of ROUNDS rounds, for a figure that seems to have grown
UNIT = "times the processor time"


@dataclass(frozen=True)
class Contest:
    """A contest of two commands that do the same work."""

    figure: str
    command: Sequence[str | Path]
    other: str
    other_command: Sequence[str | Path]


def copying(folder: Path, out: Path, copy: Path) -> Iterator[Contest]:
    """Yields contests of work that moves bytes."""
    program = folder / "program.pte"
    make_program(program, SIZE)
    segmented = bundle(program, out)
    simple = [each for each in segmented if each not in ("--to", "segmented")]
    cp = ["cp", program, copy]
    yield Contest("bundle --no-sync", [*simple, "--no-sync"], "cp", cp)
    yield Contest("bundle --to segmented --no-sync", [*segmented, "--no-sync"], "cp", cp)

    bundled = folder / "program.bpte"
    quietly([*bundle(program, bundled), "--no-sync"])
    verify = [ETSTREAM, "verify", bundled]
    yield Contest("verify of a segmented bundle", verify, "xxhsum -H2", ["xxhsum", "-H2", bundled])

    programs = write_programs(folder, SIZE)
    pte = [ETSTREAM, "pte", programs[0], "--segment-alignment", "4096", "-o", out]
    yield Contest("pte --no-sync", [*pte, "--no-sync"], "cp", ["cp", programs[0], copy])
    yield Contest("share --dry-run", [ETSTREAM, "share", *programs, "--dry-run"], "cat", ["cat", *programs])

    checkpoint = folder / "model.safetensors"
    write_checkpoint(checkpoint, [[4096, 2048]] * (SIZE // (16 * MIB)), random.Random(1).randbytes)
    ptd = [ETSTREAM, "ptd", checkpoint, "-o", out, "--no-sync"]
    cp = ["cp", checkpoint, copy]
    yield Contest("ptd --no-sync", ptd, "cp", cp)
    yield Contest("ptd --dtype float32 --no-sync", [*ptd, "--dtype", "float32"], "cp", cp)
    package = [ETSTREAM, "ptn", GRAPH, "--constants", checkpoint, "-o", out, "--no-sync"]
    yield Contest("ptn --no-sync", package, "cp", cp)

    payloads = write_payloads(folder, SIZE // 3)
    pack = [ETSTREAM, "fat", *(f"{path.name}={path}" for path in payloads), "-o", out, "--no-sync"]
    cat = ["sh", "-c", f"cat {' '.join(map(str, payloads))} > {copy}"]
    yield Contest("fat --no-sync", pack, "cat", cat)


def packing(folder: Path, out: Path, copy: Path) -> Iterator[Contest]:
    """Yields contests of packing, each with one thread."""
    source = random.Random(1)
    weights, stored, packed = folder / "bfloat16", folder / "stored", folder / "packed"
    piece = bytearray(MIB)
    piece[0::2] = source.randbytes(MIB // 2)
    piece[1::2] = bytes(source.choices((0x3A, 0x3B, 0x3C, 0x3D, 0xBA, 0xBB, 0xBC, 0xBD), k=MIB // 2))
    for path, content in ((weights, bytes(piece)), (stored, source.randbytes(MIB))):
        with path.open("wb") as file:
            for _ in range(SIZE // MIB):
                file.write(content)
    options = ["-o", out, "--threads", "1", "--no-sync"]
    zstd = ["zstd", "--quiet", "--single-thread", "-o", copy]
    yield Contest("pack --no-sync", [ETSTREAM, "pack", weights, *options], "zstd -1", [*zstd, "-1", weights])
    quietly([ETSTREAM, "pack", weights, "-o", packed, "--no-sync"])
    compressed = folder / "compressed"
    quietly(["zstd", "--quiet", "-1", weights, "-o", compressed])
    yield Contest("unpack --no-sync", [ETSTREAM, "unpack", packed, *options], "zstd -d", [*zstd, "-d", compressed])
    cp = ["cp", stored, copy]
    yield Contest("pack of random bytes", [ETSTREAM, "pack", stored, *options], "cp", cp)
    quietly([ETSTREAM, "pack", stored, "-o", packed, "--no-sync"])
    yield Contest("unpack of random bytes", [ETSTREAM, "unpack", packed, *options], "cp", cp)


def describing(folder: Path, out: Path, _: Path) -> Iterator[Contest]:
    """Yields contests of work on metadata."""
    yield Contest("--version", [ETSTREAM, "--version"], "cp --version", ["cp", "--version"])

    examples = ROOT / "examples"
    case = {
        "inputs": [{"npy": str(examples / "image_0.npy")}],
        "expected_outputs": [{"npy": str(examples / "scores_0.npy")}],
    }
    cases, bundled = folder / "cases.json", folder / "cases.bpte"
    cases.write_text(json.dumps({"forward": [case] * CASES}))
    many = [ETSTREAM, "bundle", examples / "model.pte", "--cases", cases, "--no-sync", "--max-disk", "1G", "-o"]
    read = ["/usr/bin/python3", "-c", "import json, sys; json.load(open(sys.argv[1]))"]
    yield Contest(f"bundle of {CASES} cases", [*many, out], "json.load", [*read, cases])
    quietly([*many, bundled])
    yield Contest(f"verify of {CASES} cases", [ETSTREAM, "verify", bundled], "json.load", [*read, cases])

    checkpoint, header = folder / "many.safetensors", folder / "header.json"
    write_checkpoint(checkpoint, [[2 + i % 3] for i in range(TENSORS)], random.Random(1).randbytes)
    with checkpoint.open("rb") as file:
        header.write_bytes(file.read(int.from_bytes(file.read(8), "little")))
    ptd, weights, text = [ETSTREAM, "ptd", checkpoint, "--no-sync", "-o"], folder / "weights.ptd", folder / "text"
    yield Contest(f"ptd of {TENSORS} tensors", [*ptd, out], "json.load", [*read, header])
    quietly([*ptd, weights])
    text.mkdir()
    schema = ROOT / "schema" / "flat_tensor.fbs"
    options = ["--json", "--strict-json", "--defaults-json", "-o", text, schema, "--", weights]
    decompile = [ETSTREAM, "decompile", "--no-sync", *options]
    yield Contest("decompile", decompile, "flatc", ["flatc", "--raw-binary", *options])


MOST_GROWTH = {copying: 1.25, packing: 1.25, describing: 1.4}
"""The factor by which ratios may grow. With 16 other processes on two processors, runs differed by factors up to 1.23
and 1.33, and their times from start to end by factors up to 2.7."""

Figures = dict[str, tuple[float, str]]
"""The ratios, and what each is a ratio to."""


def read(path: Path) -> Figures:
    with path.open(newline="") as file:
        return {row["figure"]: (float(row["value"]), row["ratio to"]) for row in csv.DictReader(file)}


def write(figures: Figures, path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["figure", "value", "unit", "ratio to"])
        writer.writerows([figure, f"{value:.3g}", UNIT, other] for figure, (value, other) in figures.items())


def growth(figures: Figures, before: Figures, most: float) -> list[str]:
    """Returns a line for each figure that is over `most` times its earlier value, or that has none."""
    out = []
    for figure, (value, other) in figures.items():
        old = before.get(figure, (0.0, other))[0]
        if value > old * most:
            out.append(f"{figure}: {old:.3g} before, {value:.3g} now, {UNIT} of {other}")
    return out


def measured(contest: Contest, outputs: Sequence[Path], before: Figures, most: float) -> Figures:
    """Measures a contest, for longer if its figure seems to have grown."""

    def timed(command: Sequence[str | Path]) -> Callable[[], Time]:
        def run() -> Time:
            for file in outputs:
                file.unlink(missing_ok=True)
            return measure.timed([str(part) for part in command])

        return run

    pair = {"own": timed(contest.command), "other": timed(contest.other_command)}
    own = other = float("inf")
    for _ in range(MOST_BATCHES):
        times = measure.rounds(ROUNDS, pair)
        own = min(own, *(time.cpu for time in times["own"]))
        other = min(other, *(time.cpu for time in times["other"]))
        figures = {contest.figure: (own / other, contest.other)}
        if not growth(figures, before, most):
            break
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--renew", action="store_true", help="replace perf/quick.csv by the new figures")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    before = {} if arguments.renew else read(KEPT)
    figures: Figures = {}
    grown = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder = Path(scratch)
        outputs = folder / "out", folder / "copy"
        for contests, most in MOST_GROWTH.items():
            for contest in contests(folder, *outputs):
                found = measured(contest, outputs, before, most)
                print(f"{contest.figure:<36} {found[contest.figure][0]:>5.2f} {UNIT} of {contest.other}", flush=True)
                figures |= found
                grown += growth(found, before, most)
    write(figures, KEPT if arguments.renew else arguments.folder / KEPT.name)
    if arguments.renew or not grown:
        return 0
    for line in grown:
        print(f"GREW: {line}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
