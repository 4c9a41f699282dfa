# SPDX-License-Identifier: BSD-3-Clause
"""Shows with damaged programs that `verify` is at least as strict as ExecuTorch's loader.

The loader is asked for all that it can check: Verification.InternalConsistency, which goes through the whole
flatbuffer. `verify` may refuse more than it does, such as an index that only the use of the program would find out of
range. And it may accept a program that wants more memory than there is, which Python's binding allocates when it loads
one. It warns of bytes that no writer leaves but the loader takes, such as padding that isn't zero.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from command import Etstream
from executorch_judge import Task, Verdict, judge
from executorch_program import flatbuffer_size, names_in
from models import CachedModel
from rounds import ROUNDS

FLIPS, CUTS = 15 * ROUNDS, 10 + 3 * ROUNDS

ModelByName = Callable[[str], CachedModel]


@dataclass(frozen=True)
class Damage:
    what: str
    position: int
    program: bytes


@dataclass(frozen=True)
class Judged:
    """A damaged program, and the verdicts of both."""

    what: str
    in_a_name: bool
    accepted: bool
    warned_of: bool
    loaded: Verdict
    methods_loaded: Verdict


def flipped(rng: random.Random, program: bytes) -> Iterator[Damage]:
    """Yields programs with a byte of the header or the flatbuffer changed."""
    end = flatbuffer_size(program)
    header = 64
    for index in range(FLIPS):
        # Every fifth change is in the header, which is small and decides most.
        at = rng.randrange(header if index % 5 == 0 else end)
        damaged = bytearray(program)
        damaged[at] ^= 1 << rng.randrange(8) if index % 2 else rng.randrange(1, 256)
        what = f"byte {at} is {damaged[at]:#x} instead of {program[at]:#x}"
        yield Damage(what, at, bytes(damaged))


def truncated(rng: random.Random, program: bytes) -> Iterator[Damage]:
    """Yields programs that end early, half of them in the flatbuffer or right after it."""
    near = flatbuffer_size(program) + 100
    ends = [0, 1, 4, 7, 8, 31, 32, 63, 64, len(program) - 1]
    ends += [rng.randrange(near if index % 2 else len(program)) for index in range(CUTS - 10)]
    for end in ends:
        yield Damage(f"ends at {end}", end, program[:end])


def places_of_names(program: bytes) -> set[int]:
    """Returns every byte of the flatbuffer that belongs to a method's or an operator's name."""
    return {
        place
        for name in names_in(program)
        for match in re.finditer(re.escape(name), program[: flatbuffer_size(program)])
        for place in range(*match.span())
    }


@pytest.fixture(scope="module", params=["example", "two_methods"])
def judged(
    request: pytest.FixtureRequest,
    model: ModelByName,
    etstream: Etstream,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Judged]:
    program = model(request.param).program.read_bytes()
    rng = random.Random(request.param)
    damages = [*flipped(rng, program), *truncated(rng, program)]
    folder = tmp_path_factory.mktemp("damaged")
    files = [folder / f"{index}.pte" for index in range(len(damages))]
    for damage, file in zip(damages, files, strict=True):
        file.write_bytes(damage.program)
    tasks = [Task(str(file)) for file in files]
    verdicts = judge(tasks + [dataclasses.replace(task, load_methods=True) for task in tasks])
    loaded, methods_loaded = verdicts[: len(tasks)], verdicts[len(tasks) :]
    names = places_of_names(program)
    return [
        Judged(
            damage.what,
            damage.position in names,
            accepted := etstream.accepts(file),
            accepted and etstream.verify(file).warnings != [],
            *said,
        )
        for damage, file, *said in zip(damages, files, loaded, methods_loaded, strict=True)
    ]


def is_refused(verdict: Verdict) -> bool:
    return not verdict.accepted and not verdict.error.startswith("MemoryError")


def test_verify_refuses_whatever_executorch_refuses_or_dies_of(judged: list[Judged]) -> None:
    refused = [one for one in judged if is_refused(one.loaded)]
    assert [one for one in refused if one.accepted] == []
    # There is enough refused damage for this to say something.
    assert len(refused) > len(judged) // 4


def test_verify_refuses_every_truncated_program(judged: list[Judged]) -> None:
    cut = [one for one in judged if one.what.startswith("ends at")]
    assert len(cut) == CUTS
    assert [one for one in cut if one.accepted] == []


def test_verify_accepts_damage_that_breaks_no_rule(judged: list[Judged]) -> None:
    """Makes sure that the tests above aren't passed by refusing everything."""
    assert sum(one.accepted and not one.warned_of for one in judged) > len(judged) // 10


def may_fail_in_use(one: Judged) -> bool:
    """Returns whether the damage is to a name, which a file can't be blamed for.

    Which operators there are is the runtime's business, and Python's binding dies
    of a name that isn't UTF-8.
    """
    operator_missing = "error: 0x:14" in one.methods_loaded.error
    return one.in_a_name or operator_missing


def test_executorch_loads_every_method_of_whatever_verify_accepts_without_a_warning(judged: list[Judged]) -> None:
    accepted = [one for one in judged if one.accepted and not one.warned_of]
    failing = [one for one in accepted if is_refused(one.methods_loaded)]
    assert [one for one in failing if not may_fail_in_use(one)] == []
