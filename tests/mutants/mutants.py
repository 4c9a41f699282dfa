# SPDX-License-Identifier: BSD-3-Clause
"""Checks that programs which `etstream verify` accepts stay within their memory: runs programs with changed fields on
ExecuTorch.

    ETSTREAM=build/release/bin/etstream build/peer/bin/python tests/mutants/mutants.py

prints a table. No mutant that `verify` accepts may end by SIGSEGV or SIGBUS (see judge.cpp); those that a kernel's own
check ends are counted apart. In the other direction, `verify` has to accept all programs, those of valid_models.py, and
those in the folders that --valid names.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import runtime
import torch
from judge import MEMORY_SIGNALS, NEEDED, Judge, Verify
from mutations import Change, Fields
from parts import PROGRAM_SCHEMA, XNNPACK_SCHEMA, Parts, schema_tables

sys.path.append(str(Path(__file__).resolve().parents[1] / "peer"))
from rounds import ROUNDS  # noqa: E402

ACCEPTED_A_ROUND = 100  # mutants that verify accepts

PROGRAMS = (
    *("portable", "kinds", "two_methods", "dynamic", "mutable_buffers", "control_flow", "quantized_kernels"),
    *("xnnpack", "xnnpack_quantized", "xnnpack_dynamic", "xnnpack_named_data", "llama"),
    # The programs of valid_models.py.
    *("scan", "map_with_operand", "cond_with_indices", "cache_at_position", "number_of_input", "number_of_buffer"),
    *("lists", "views", "sizes", "indices", "lstm", "encoder"),
    *(f"quantized_table_{bits}_{scales}" for bits in (8, 4, 2) for scales in ("rows", "groups")),
)
_HERE = Path(__file__).resolve().parent
_REFUSED_TOO = 10  # one of this number of refused mutants is run
_AT_ONCE = 200  # the number that is run before others are made


@dataclass(frozen=True)
class Mutant:
    program: str
    what: str  # the changed fields
    how: str
    content: bytes


class Subject:
    """A program that mutants are made of."""

    def __init__(self, file: Path) -> None:
        self.name = file.stem
        self.file = file
        self.content = file.read_bytes()
        self.inputs = inputs_of(file)
        self._parts = Parts.of(self.content)
        self._fields = Fields(self._parts.tree, schema_tables(PROGRAM_SCHEMA))
        self._payloads = {
            index: Fields(payload.graph, schema_tables(XNNPACK_SCHEMA))
            for index, payload in self._parts.payloads.items()
        }

    def with_fields(self, rng: random.Random, count: int) -> Mutant:
        """Returns a mutant with changed fields, of the flatbuffer or of a delegate's."""
        payload = rng.choice(sorted(self._payloads)) if self._payloads and rng.random() < 0.5 else None
        fields = self._fields if payload is None else self._payloads[payload]
        with ExitStack() as changed:
            changes = [changed.enter_context(fields.change(rng)) for _ in range(count)]
            content = self._parts.with_payloads(*[] if payload is None else [payload])
        return self._mutant(changes, content)

    def with_byte(self, rng: random.Random) -> Mutant:
        """Returns a mutant with a changed byte, of the flatbuffer or of the beginning of a delegate's data."""
        ranges = [(0, int.from_bytes(self.content[16:24], "little"))]
        base = int.from_bytes(self.content[24:32], "little")
        for index, payload in self._parts.payloads.items():
            place = self._parts.tree["segments"][index]
            ranges.append((base + place["offset"], place["size"] - len(payload.constants)))
        start, size = rng.choice(ranges)
        at = start + rng.randrange(size)
        content = bytearray(self.content)
        content[at] = (content[at] ^ rng.randrange(1, 256)) if rng.random() < 0.5 else content[at] ^ 1 << rng.randrange(8)
        where = "flatbuffer" if start == 0 else "delegate"
        return Mutant(self.name, f"a byte of the {where}", f"{at}", bytes(content))

    def unchanged(self) -> bytes:
        """Returns the program, written by the code that writes the mutants."""
        return self._parts.with_payloads(*self._payloads)

    def _mutant(self, changes: list[Change], content: bytes) -> Mutant:
        what = ", ".join(change.what for change in changes)
        return Mutant(self.name, what, ", ".join(change.how for change in changes), content)


@dataclass
class Tally:
    made: Counter[str] = field(default_factory=Counter)  # all mutants by program
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)  # the ends of accepted mutants by program and kind
    # of the ended ones: the signal, what, and why
    ended: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    ran_though_refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # the fields, and the error
    refused_valid: list[str] = field(default_factory=list)

    def accepted(self) -> int:
        return self.ends.total()


class Trial:
    """A trial that counts how mutants end, and runs several at once."""

    def __init__(self, folder: Path, seed: int, keep: Path | None) -> None:
        self.verify = Verify(os.environ["ETSTREAM"])
        self.tally = Tally()
        self._judge, self._folder, self._seed, self._keep = Judge(), folder, seed, keep
        # Each mutant has the error of verify, and whether it warned.
        self._waiting: list[tuple[Mutant, Path, str | None, bool]] = []

    def take(self, mutant: Mutant) -> None:
        self.tally.made[mutant.program] += 1
        number = self.tally.made.total()
        file = self._folder / f"{number}.pte"
        file.write_bytes(mutant.content)
        error = self.verify.file(file)
        if error is None or number % _REFUSED_TOO == 0:
            self._waiting.append((mutant, file, error, self.verify.has_warned))
        else:
            file.unlink()
        if len(self._waiting) >= _AT_ONCE:
            self.finish()

    def finish(self) -> None:
        ends = self._judge.run([file for _, file, *_ in self._waiting], self._seed)
        for (mutant, file, error, has_warned), (end, why) in zip(self._waiting, ends, strict=True):
            if error is None:
                if end in MEMORY_SIGNALS and has_warned:
                    end += ", of which verify warned"
                self.tally.ends[mutant.program, _kind(end)] += 1
                if end.startswith("SIG"):
                    self.tally.ended[end, mutant.what, re.sub(r"\d+", "N", why)[:120]] += 1
                if end in MEMORY_SIGNALS and self._keep:
                    shutil.copy(file, self._keep / f"{mutant.program}-{mutant.what}-{file.name}")
            elif end == "ran":
                self.tally.ran_though_refused[mutant.what, error.partition("expected")[2][:100]] += 1
            file.unlink()
        self._waiting = []


def _kind(end: str) -> str:
    if end in MEMORY_SIGNALS:
        return "memory"
    if end == "SIGALRM":
        return "no end"
    return "ended" if end.startswith("SIG") else end.split()[0]


def make_programs(folder: Path, wanted: Sequence[str]) -> list[Path]:
    """Makes the programs of programs.py, unless they are there, by a process of its own, as exporting takes memory."""
    missing = [name for name in wanted if not (folder / f"{name}.inputs").exists()]
    if missing:
        subprocess.run([sys.executable, str(_HERE / "programs.py"), str(folder), *missing], check=True)
    return [folder / f"{name}.pte" for name in wanted]


def inputs_of(file: Path) -> runtime.Inputs:
    return torch.load(file.with_suffix(".inputs"), weights_only=True)  # type: ignore[no-any-return]


def check_valid(subjects: list[Subject], folders: list[Path], trial: Trial, scratch: Path) -> int:
    """Checks that programs run, also when they are written anew. Returns how many there were."""
    files = [file for folder in folders for kind in ("pte", "bpte") for file in sorted(folder.rglob(f"*.{kind}"))]
    for subject in subjects:
        anew = scratch / f"{subject.name}-anew.pte"
        anew.write_bytes(subject.unchanged())
        files += [subject.file, anew]
        for file in (subject.file, anew):
            end = runtime.run(file.read_bytes(), subject.inputs)
            assert end.kind == "ran", (file, end)
    for file in files:
        error = trial.verify.file(file)
        if error is not None and NEEDED not in error:
            trial.tally.refused_valid.append(f"{file}: {error}")
    return len(files)


def print_table(tally: Tally, names: list[str], valid: int) -> None:
    kinds = ("ran", "refused", "no end", "ended", "memory")
    print(f"{'':20}{'mutants':>9}{'accepted':>9}" + "".join(f"{kind:>9}" for kind in kinds))
    rows = [
        [tally.made[name], sum(tally.ends[name, kind] for kind in kinds), *(tally.ends[name, kind] for kind in kinds)]
        for name in names
    ]
    for name, row in [*zip(names, rows, strict=True), ("all", [sum(column) for column in zip(*rows, strict=True)])]:
        print(f"{name:20}" + "".join(f"{cell:9}" for cell in row))
    print("\naccepted, and ended by a signal; SIGSEGV and SIGBUS are those of memory")
    by_weight = sorted(tally.ended.items(), key=lambda each: (each[0][0] not in MEMORY_SIGNALS, -each[1]))
    for (end, what, why), times in by_weight:
        print(f"{times:7}  {end} {what}: {why}")
    print(f"\nof one in {_REFUSED_TOO} of those refused, these ran")
    for (what, error), times in tally.ran_though_refused.most_common(40):
        print(f"{times:7}  {what}: ran, expected{error}")
    print(f"\nvalid programs refused: {len(tally.refused_valid)} of {valid}")
    for line in tally.refused_valid:
        print(f"    {line}")


def makers(kinds: list[str]) -> Iterator[Callable[[Subject, random.Random], Mutant]]:
    by_kind: dict[str, Callable[[Subject, random.Random], Mutant]] = {
        "field": lambda subject, rng: subject.with_fields(rng, 1),
        "fields": lambda subject, rng: subject.with_fields(rng, rng.randint(2, 4)),
        "byte": lambda subject, rng: subject.with_byte(rng),
    }
    return itertools.cycle([by_kind[kind] for kind in kinds])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=("field", "fields", "byte"), help="by default a field")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="to stop after")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], choices=PROGRAMS, metavar="NAME", help="a program")
    parser.add_argument("--programs", type=Path, default=Path("build/mutants"), help="where they are kept")
    parser.add_argument("--keep", type=Path, help="a folder for the mutants that read or write where they must not")
    parser.add_argument("--valid", type=Path, action="append", default=[], help="a folder of more valid programs")
    arguments = parser.parse_args()
    subjects = [Subject(file) for file in make_programs(arguments.programs, arguments.only or PROGRAMS)]
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    rng = random.Random(arguments.seed)
    until = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as scratch:
        trial = Trial(Path(scratch), arguments.seed, arguments.keep)
        valid = check_valid(subjects, arguments.valid, trial, Path(scratch))
        turns = zip(makers(arguments.kind or ["field"]), itertools.cycle(subjects), strict=False)
        for make, subject in turns:
            if trial.tally.accepted() >= ACCEPTED_A_ROUND * ROUNDS or time.monotonic() > until:
                break
            trial.take(make(subject, rng))
        trial.finish()
    print_table(trial.tally, [subject.name for subject in subjects], valid)
    wrong = sum(count for (_, kind), count in trial.tally.ends.items() if kind == "memory")
    return 1 if wrong or trial.tally.refused_valid else 0


if __name__ == "__main__":
    sys.exit(main())
