# SPDX-License-Identifier: BSD-3-Clause
"""Tells which weights are in a lowered program, and puts those of another checkpoint there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from etstream import _core
from etstream._arguments import is_path, several
from etstream._errors import InvalidArgumentError
from etstream._options import Unpack, keywords_of
from etstream._programs import all_shards
from etstream._types import FilesLike, OutputLike, SourceLike
from etstream._weights import WeightsLike, joined_checkpoint
from etstream._write import WriteOptions, write
from etstream.results import ReweightingPlan, Table, WeightOrigins


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
    return WeightOrigins._of(_core.explain(program, all_shards(weights, partial), joined_checkpoint(by, partial)))


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
    return ReweightingPlan(
        program=whole, weights=Table(planned), replaced=replaced, origins=WeightOrigins._of(origins)
    )
