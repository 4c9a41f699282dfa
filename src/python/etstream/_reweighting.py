# SPDX-License-Identifier: BSD-3-Clause
"""Tells which weights are in a lowered program, and puts those of another checkpoint there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from etstream import _core
from etstream._arguments import is_path, several
from etstream._errors import InvalidArgumentError
from etstream._options import Unpack, keywords_of
from etstream._programs import all_shards
from etstream._types import FilesLike, OutputLike, SourceLike
from etstream._weights import WeightsLike, joined_checkpoint
from etstream._write import WriteOptions, write


@dataclass(frozen=True)
class TensorOrigin:
    """A tensor of a checkpoint, and what was done to it."""

    tensor: str
    """The tensor's name."""
    steps: tuple[str, ...]
    """The steps in their order: "cast to bfloat16", "transposed"; none for the bytes as they are."""


@dataclass(frozen=True)
class PayloadOrigin:
    """A payload of a program that weights may be in, and what it is made of."""

    label: str
    """The payload in words: "constant 'w' of method 'forward'"."""
    name: str
    """Its key, or its name on the page of inspect(): "forward / value 3"; "" if it has neither."""
    file: str
    """The file that it lies in: the program's, or one of its tensor data files."""
    offset: int
    """The place in that file, in bytes."""
    size: int
    """The number of its bytes."""
    type: str
    """The type and the shape: "float32 [4, 3]"; "" if they are not known."""
    tensors: tuple[TensorOrigin, ...]
    """The tensors whose bytes follow one another in it; none if none are known to be behind it."""
    equals: tuple[str, ...]
    """The names of the other tensors in ways to the same bytes."""
    constant: str
    """The reason why no weights are behind it, such as "the number 0 everywhere"; otherwise ""."""
    nearest: tuple[str, ...]
    """If nothing explains it, the names of tensors of as many elements, the nearest first."""
    explained: bool
    """Whether it is known what its bytes are made of."""


@dataclass(frozen=True)
class WeightOrigins:
    """The payloads of a program, and what they are made of. True if all are explained."""

    payloads: tuple[PayloadOrigin, ...]
    """The payloads in the order in which the program has them."""
    unused: tuple[str, ...]
    """The names of the tensors of the checkpoint that are behind no payload."""
    names: dict[str, str] = field(hash=False)
    """The names of tensors by the names of payloads, as inspect() and its page take them."""

    def __bool__(self) -> bool:
        return all(each.explained for each in self.payloads)


class ReweightingPlan(NamedTuple):
    """The plans of a program with the weights of another checkpoint, and of its tensor data files."""

    program: _core.FilePlan
    weights: tuple[_core.FilePlan, ...]
    """The plans of the tensor data files, in the order of the old ones."""
    replaced: int
    """The number of payloads that are made of the new checkpoint."""
    origins: WeightOrigins
    """The origins of the old payloads."""


def explain(program: SourceLike, *weights: FilesLike, by: WeightsLike, partial: bool = False) -> WeightOrigins:
    """Tells which tensors of a checkpoint the payloads of a program are, and by which steps they became so.

    Programs name weights by hashes, or not at all, so that each payload is compared in full with what the tensors give.

    Args:
        program: a source: a program, or a bundle with one.
        weights: sources: the .ptd files that it runs with. The path of the first of several shards stands for all, and
            a list of paths for each of them.
        by: the checkpoint that the program was exported from: weights as for ptd().
        partial: take each file of a set by itself; see Checkpoint.

    Returns:
        The origins of all payloads; true if all are explained.

    Raises:
        NotFoundError: a file is not there, or a key that neither the program nor its weights have.
        CorruptError: a file is damaged, or does not fit the program.
        UnsupportedError: a key is in two files; a file is of another kind.
    """
    return _core.explain(program, all_shards(weights, partial), joined_checkpoint(by, partial))


@keywords_of(WriteOptions)
def reweight(
    program: SourceLike,
    *weights: FilesLike,
    was: WeightsLike,
    now: WeightsLike,
    output: OutputLike | None = None,
    weights_to: OutputLike | Iterable[OutputLike] = (),
    partial: bool = False,
    **options: Unpack[WriteOptions],
) -> ReweightingPlan:
    """Puts the weights of another checkpoint into a lowered program, and its tensor data files. Returns the plan.

    The files are those of an export of the network with the new weights, without an export: each payload is made of the
    new checkpoint by the steps that gave it of the old one. A tensor of another floating-point type is cast to that of
    the payload. A warning names the new tensors that are not as they were and reach no payload. All files appear
    together, or none does, and none of them may be an input.

    Args:
        program: a source: a .pte file.
        weights: sources: the .ptd files that it runs with. The path of the first of several shards stands for all, and
            a list of paths for each of them.
        was: the checkpoint that the program was exported from: weights as for ptd().
        now: the checkpoint whose weights it gets.
        output: where the program goes.
        weights_to: an output too, or several: where the tensor data goes, one for each file of weights, in their order.
        partial: take each file of a set by itself; see Checkpoint.
        options: those of WriteOptions.

    Raises:
        InvalidArgumentError: the new checkpoint lacks a tensor, or has it in another shape; a payload may be one of
            several tensors that differ now; two payloads are equal now, which an export would store once; there are not
            as many outputs for weights as files of weights.
        UnsupportedError: the old checkpoint does not explain a payload; a key is in two files; a file is of another
            kind.
        NotFoundError: a file is not there, or a key that neither the program nor its weights have.
        CorruptError: a file is damaged, or does not fit the program.
    """
    given: Any = weights_to
    if is_path(given) or isinstance(given, int) or hasattr(given, "write"):
        given = [given]
    outputs: list[OutputLike | None] = several("weights_to", "outputs", given)
    with _core.Inputs():
        files = all_shards(weights, partial)
        if options["dry_run"] and not outputs:
            outputs = [None] * len(files)
        if len(outputs) != len(files):
            raise InvalidArgumentError(
                f"weights_to: expected as many outputs as files of weights, {len(files)}, found {len(outputs)}"
            )
        old, new = joined_checkpoint(was, partial), joined_checkpoint(now, partial)
        whole, planned, replaced, origins = _core.plan_reweighting(program, files, old, new)
        # Weights come first: a program must not be there before its weights.
        write([*zip(planned, outputs), (whole, output)], options)
    return ReweightingPlan(whole, tuple(planned), replaced, origins)
