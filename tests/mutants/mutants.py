# SPDX-License-Identifier: BSD-3-Clause
"""Whether what `etstream verify` accepts runs: programs with changed fields, on ExecuTorch.

    ETSTREAM=build/release/bin/etstream build/peer/bin/python tests/mutants/mutants.py --mutants 20000

prints a table. ExecuTorch ends the mutants that it crashes on by a signal: of those that `verify` accepted none should.
In the other direction all programs, those of valid_models.py, and those in the folders that --valid names have to be
accepted. tests/mutants/table compares with the command as it was before it checked calls.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
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
from mutations import Change, Fields
from parts import PROGRAM_SCHEMA, XNNPACK_SCHEMA, Parts, schema_tables

PROGRAMS = (
    *("portable", "kinds", "two_methods", "dynamic", "mutable_buffers", "control_flow", "quantized_kernels"),
    *("xnnpack", "xnnpack_quantized", "xnnpack_dynamic", "xnnpack_named_data", "llama"),
)
# Of valid_models.py, and not mutated.
VALID = (
    *("scan", "map_with_operand", "cond_with_indices", "cache_at_position", "number_of_input", "number_of_buffer"),
    *("lists", "views", "sizes", "indices", "lstm", "encoder"),
    *(f"quantized_table_{bits}_{scales}" for bits in (8, 4, 2) for scales in ("rows", "groups")),
)
_HERE = Path(__file__).resolve().parent
_REFUSED_TOO = 10  # of so many refused mutants one is run
_NEEDED = "to come from a tensor data file"  # as verify says that it is of keys
_AT_ONCE = 40  # so many are run before others are made
_MOST_CLASSES = 40  # that are printed


@dataclass(frozen=True)
class Mutant:
    program: str
    what: str  # the fields
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
        """Of the flatbuffer, or of a delegate's."""
        payload = rng.choice(sorted(self._payloads)) if self._payloads and rng.random() < 0.5 else None
        fields = self._fields if payload is None else self._payloads[payload]
        with ExitStack() as changed:
            changes = [changed.enter_context(fields.change(rng)) for _ in range(count)]
            content = self._parts.with_payloads(*[] if payload is None else [payload])
        return self._mutant(changes, content)

    def with_byte(self, rng: random.Random) -> Mutant:
        """With a byte of the flatbuffer changed, or of the first of a delegate's."""
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
        """Written anew by what writes the mutants."""
        return self._parts.with_payloads(*self._payloads)

    def _mutant(self, changes: list[Change], content: bytes) -> Mutant:
        what = ", ".join(change.what for change in changes)
        return Mutant(self.name, what, ", ".join(change.how for change in changes), content)


@dataclass
class Tally:
    made: Counter[str] = field(default_factory=Counter)  # all by program
    accepted: Counter[str] = field(default_factory=Counter)
    ends: Counter[tuple[str, bool, str]] = field(default_factory=Counter)  # program, accepted, and kind
    crashes: Counter[tuple[str, str]] = field(default_factory=Counter)  # of those accepted: what, and why
    accepted_before: Counter[str] = field(default_factory=Counter)  # by program
    crashes_before: Counter[tuple[str, str]] = field(default_factory=Counter)  # program, and why
    ran_though_refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # what, and the error
    refused_valid: list[str] = field(default_factory=list)


class Verify:
    def __init__(self, command: str, file: Path) -> None:
        self._command, self._file = command, file

    def content(self, content: bytes) -> str | None:
        """The first error."""
        self._file.write_bytes(content)
        return self.file(self._file)

    def file(self, file: Path) -> str | None:
        done = subprocess.run([self._command, "verify", str(file)], capture_output=True, check=False, close_fds=False)
        if done.returncode == 0:
            # Which is no promise without them.
            return f"expected {_NEEDED}" if _NEEDED.encode() in done.stdout else None
        if done.returncode != 1:
            raise AssertionError(f"verify ended with {done.returncode} on {file}: {done.stderr.decode()}")
        said = done.stderr.decode(errors="replace").splitlines()
        return (said or ["?"])[0]


class Judge:
    """Counts how mutants end, several in a go; also those that an earlier verify accepts, if one is given."""

    def __init__(self, verify: Verify, before: Verify | None, tally: Tally, keep: Path | None) -> None:
        self._verify, self._before, self._tally, self._keep = verify, before, tally, keep
        self._kept = 0
        # With the error of verify, and whether the earlier one accepts it.
        self._waiting: list[tuple[Mutant, runtime.Inputs, str | None, bool]] = []

    def take(self, mutant: Mutant, inputs: runtime.Inputs) -> None:
        error = self._verify.content(mutant.content)
        was_accepted = self._before is not None and self._before.content(mutant.content) is None
        self._tally.made[mutant.program] += 1
        self._tally.accepted[mutant.program] += error is None
        self._tally.accepted_before[mutant.program] += was_accepted
        if error is None or was_accepted or self._tally.made[mutant.program] % _REFUSED_TOO == 0:
            self._waiting.append((mutant, inputs, error, was_accepted))
        if len(self._waiting) >= _AT_ONCE:
            self.finish()

    def finish(self) -> None:
        ends = runtime.run_all([(mutant.content, inputs) for mutant, inputs, *_ in self._waiting])
        for (mutant, _, error, was_accepted), end in zip(self._waiting, ends, strict=True):
            self._tally.ends[mutant.program, error is None, end.kind] += 1
            if was_accepted and end.kind == "crashed":
                self._tally.crashes_before[mutant.program, end.why] += 1
            if error is None:
                self._keep_it(mutant, end)
            if error is None and end.kind == "crashed":
                self._tally.crashes[mutant.what, end.why] += 1
            if error is not None and end.kind == "ran":
                self._tally.ran_though_refused[mutant.what, error.partition("expected")[2][:100]] += 1
        self._waiting = []

    def _keep_it(self, mutant: Mutant, end: runtime.End) -> None:
        if not self._keep:
            return
        self._kept += 1
        file = self._keep / f"{self._kept}.pte"
        file.write_bytes(mutant.content)
        note = {"program": mutant.program, "what": mutant.what, "how": mutant.how, "end": end.kind, "why": end.why}
        with (self._keep / "ends.jsonl").open("a") as notes:
            print(json.dumps({"file": file.name, **note}), file=notes)


def make_programs(folder: Path, wanted: Sequence[str]) -> list[Path]:
    """Those of programs.py, made unless they are there, by a process of its own: exporting takes memory."""
    missing = [name for name in wanted if not (folder / f"{name}.inputs").exists()]
    if missing:
        subprocess.run([sys.executable, str(_HERE / "programs.py"), str(folder), *missing], check=True)
    return [folder / f"{name}.pte" for name in wanted]


def inputs_of(file: Path) -> runtime.Inputs:
    return torch.load(file.with_suffix(".inputs"), weights_only=True)  # type: ignore[no-any-return]


def check_valid(
    subjects: list[Subject], programs: list[Path], folders: list[Path], verify: Verify, tally: Tally
) -> int:
    """How many there were. That programs run, and run once they were written anew, is asserted."""
    for program in programs:
        end = runtime.run(program.read_bytes(), inputs_of(program))
        assert end.kind == "ran", (program, end)
    files = programs + [file for folder in folders for kind in ("pte", "bpte") for file in sorted(folder.rglob(f"*.{kind}"))]
    for file in [subject.file for subject in subjects] + files:
        error = verify.file(file)
        if error is not None and _NEEDED not in error:
            tally.refused_valid.append(f"{file}: {error}")
    for subject in subjects:
        for content in (subject.content, subject.unchanged()):
            end = runtime.run(content, subject.inputs)
            assert end.kind == "ran", (subject.name, end)
        error = verify.content(subject.unchanged())
        if error is not None:
            tally.refused_valid.append(f"{subject.name}, written anew: {error}")
    return len(files) + 2 * len(subjects)


def print_table(tally: Tally, names: list[str], valid: int, with_before: bool) -> None:
    kinds = ("ran", "refused", "no end", "crashed")
    before = ("accepted", "crashed") if with_before else ()
    print(f"{'':20}{'mutants':>9}{'accepted':>9}" + "".join(f"{kind:>9}" for kind in kinds) + " |" * with_before, end="")
    print("".join(f"{kind:>9}" for kind in before) + ("   before" if with_before else ""))
    crashed_before = Counter({name: sum(n for (at, _), n in tally.crashes_before.items() if at == name) for name in names})
    rows = [
        [tally.made[name], tally.accepted[name], *(tally.ends[name, True, kind] for kind in kinds)]
        + [tally.accepted_before[name], crashed_before[name]] * with_before
        for name in names
    ]
    for name, row in [*zip(names, rows, strict=True), ("all", [sum(column) for column in zip(*rows, strict=True)])]:
        cells = [f"{cell:9}" for cell in row]
        print(f"{name:20}" + "".join(cells[:6]) + (" |" + "".join(cells[6:]) if with_before else ""))
    print(f"\naccepted, but crashed: {tally.crashes.total()}")
    for (what, why), times in tally.crashes.most_common():
        print(f"{times:7}  {what}: {why}")
    if with_before:
        print_classes(tally)
    refused = {kind: sum(tally.ends[name, False, kind] for name in names) for kind in kinds}
    print(f"\nrefused, and run: {refused}")
    for (what, error), times in tally.ran_though_refused.most_common(40):
        print(f"{times:7}  {what}: ran, expected{error}")
    print(f"\nvalid programs refused: {len(tally.refused_valid)} of {valid}")
    for line in tally.refused_valid:
        print(f"    {line}")


def print_classes(tally: Tally) -> None:
    """What ended ExecuTorch, before and now."""
    before: Counter[str] = Counter()
    for (_, why), times in tally.crashes_before.items():
        before[why] += times
    now: Counter[str] = Counter()
    for (_, why), times in tally.crashes.items():
        now[why] += times
    print(f"\n{'before':>7}{'now':>7}  crashed")
    for why, times in (before | now).most_common(_MOST_CLASSES):
        print(f"{before[why]:7}{now[why]:7}  {why}")
    others = [why for why, _ in (before | now).most_common()[_MOST_CLASSES:]]
    print(f"{sum(before[why] for why in others):7}{sum(now[why] for why in others):7}  {len(others)} others")


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
    parser.add_argument("--mutants", type=int, default=20000, help="that verify accepts, to stop after")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="to stop after")
    parser.add_argument("--most-crashes-per-thousand", type=float, help="of accepted mutants; fail over so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], choices=PROGRAMS, metavar="NAME", help="a program")
    parser.add_argument("--programs", type=Path, default=Path("build/mutants"), help="where they are kept")
    parser.add_argument("--keep", type=Path, help="a folder for the mutants that verify accepts, with how each ended")
    parser.add_argument("--before", help="an earlier command, to compare with")
    parser.add_argument("--valid", type=Path, action="append", default=[], help="a folder of more valid programs")
    arguments = parser.parse_args()
    subjects = [Subject(file) for file in make_programs(arguments.programs, arguments.only or PROGRAMS)]
    programs = make_programs(arguments.programs / "valid", VALID)
    runtime.load_libraries()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    tally = Tally()
    rng = random.Random(arguments.seed)
    until = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as scratch:
        verify = Verify(os.environ["ETSTREAM"], Path(scratch) / "mutant.pte")
        before = Verify(arguments.before, Path(scratch) / "before.pte") if arguments.before else None
        valid = check_valid(subjects, programs, arguments.valid, verify, tally)
        judge = Judge(verify, before, tally, arguments.keep)
        turns = zip(makers(arguments.kind or ["field"]), itertools.cycle(subjects), strict=False)
        for make, subject in turns:
            if tally.accepted.total() >= arguments.mutants or time.monotonic() > until:
                break
            judge.take(make(subject, rng), subject.inputs)
        judge.finish()
    print_table(tally, [subject.name for subject in subjects], valid, before is not None)
    most = arguments.most_crashes_per_thousand
    too_many = most is not None and tally.crashes.total() * 1000 > most * tally.accepted.total() + 1000
    return 1 if too_many or tally.refused_valid else 0


if __name__ == "__main__":
    sys.exit(main())
