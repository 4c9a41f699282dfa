# SPDX-License-Identifier: BSD-3-Clause
"""Shares the weights that programs have in common, tells which these are, and replaces them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from etstream import _core
from etstream._arguments import alignment, asked, by_name, is_path, names, path, several, size
from etstream._errors import InvalidArgumentError
from etstream._programs import all_shards, shard_outputs
from etstream._types import FilesLike, OutputLike, SourceLike
from etstream._weights import WeightsLike, joined_checkpoint
from etstream._writing import Unpack, WriteOptions, keywords_of, write
from etstream.results import ReweightingPlan, SharedWeightsPlan, SharingReport, Table, WeightOrigins


class SharingOptions(WriteOptions, total=False):
    """The options of programs that share weights. Sizes are in bytes: an int, or a str such as "4K".

    Keys, besides those of WriteOptions:
        least_size: the size of the smallest data that moves, at least 1.
        align: the alignment of programs in a fat container, a power of two up to 2**30.
        split_max_size: write several files of tensor data, each with at most this many bytes of data, in the order of
            keys; see ptd_shards().
    """

    least_size: Annotated[int | str, 512]
    align: Annotated[int | str, 1]
    split_max_size: Annotated[int | str | None, None]


@keywords_of(SharingOptions)
def share(
    programs: Mapping[str, SourceLike] | Iterable[str | os.PathLike[str]],
    weights_to: OutputLike | None = None,
    *,
    out_dir: str | os.PathLike[str] | None = None,
    fat: OutputLike | None = None,
    **options: Unpack[SharingOptions],
) -> SharedWeightsPlan:
    """Moves the weights that programs have in common into one .ptd file. Returns the plan.

    Each program runs with the .ptd file as it did without it. Constants and named data of equal bytes move. Data that
    only one program has stays in it, and so does the data of delegates. All files appear together, or none does, and
    none of them may be an input.

    Args:
        programs: sources of .pte files by name, or paths; a path's name is that of its file without the ending. The
            report and the container have these names.
        weights_to: an output: where the .ptd file goes. With split_max_size it is the path that shards are named after:
            NAME-00001-of-00003.ptd.
        out_dir: the folder that the programs go to, as NAME.pte; made if it is not there. Names that are paths are
            refused.
        fat: an output too: a fat container of the programs, in which they begin at multiples of `align` bytes.
        options: those of SharingOptions.

    Raises:
        CorruptError: a program is damaged.
        InvalidArgumentError: there are fewer than two programs, or they have nothing in common; neither out_dir nor fat
            is given; two paths have one name; a container can't have a name; or, with out_dir, a name is a path.
    """
    if out_dir is None and fat is None and not options["dry_run"]:
        raise InvalidArgumentError("give out_dir for the programs, or a fat container for them, or both")
    out_dir = asked(out_dir)
    with _core.Inputs():
        named = _by_name(programs)
        planned, weights, container, report = _core.plan_shared_weights(
            by_name("programs", named),
            size("least_size", options["least_size"]),
            fat is not None,
            alignment("align", options["align"]),
            size("split_max_size", options["split_max_size"]),
        )
        is_split = options["split_max_size"] is not None
        outputs = {"shards": Table(weights)} if is_split else {"weights": weights[0] if weights else None}
        plan = SharedWeightsPlan(
            programs=dict(zip(named, planned)), container=container, report=SharingReport._of(report), **outputs
        )
        files: list[tuple[_core.FilePlan, OutputLike | None]] = []
        if plan.shards and weights_to is not None:
            files += shard_outputs(plan.shards, weights_to)
        elif plan.weights is not None:
            files.append((plan.weights, weights_to))
        elif not options["dry_run"]:
            raise InvalidArgumentError("the programs have no weights in common that could be shared")
        if out_dir is not None:
            files += [(each, _core.path_in_folder(out_dir, f"{name}.pte")) for name, each in plan.programs.items()]
        if plan.container is not None:
            files.append((plan.container, fat))
        with _new_folder(None if options["dry_run"] else out_dir, options["sync"]):
            write(files, options)
    return plan


@contextmanager
def _new_folder(path: str | None, sync: bool) -> Iterator[None]:
    """Makes the folder unless it is there, and removes it again after an error."""
    made = path if path is not None and _core.make_folder(path, sync) else None
    try:
        yield
    except BaseException:
        if made is not None:
            os.rmdir(made)
        raise


def _by_name(programs: Mapping[str, SourceLike] | Iterable[str | os.PathLike[str]]) -> dict[str, SourceLike]:
    if isinstance(programs, Mapping):
        return dict(programs)
    out: dict[str, SourceLike] = {}
    for program in several("programs", "paths", programs):
        place = path("programs", program)
        name = os.path.splitext(os.path.basename(place))[0]
        if name in out:
            raise InvalidArgumentError(f"two programs are called {name!r}; give them names of their own, in a dict")
        out[name] = place
    return out


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
    keep: Iterable[str] = (),
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
        keep: the labels or names of payloads that stay as they are, though nothing explains them.
        options: those of WriteOptions.

    Raises:
        InvalidArgumentError: the new checkpoint lacks a tensor, or has it in another shape; a payload may be one of
            several tensors that differ now; two payloads are equal now, which an export would store once; there are not
            as many outputs for weights as files of weights; `keep` has another name than those of unexplained payloads.
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
        whole, planned, replaced, origins = _core.plan_reweighting(program, files, old, new, names("keep", keep))
        # Weights come first: a program must not be there before its weights.
        write([*zip(planned, outputs), (whole, output)], options)
    return ReweightingPlan(program=whole, weights=Table(planned), replaced=replaced, origins=WeightOrigins._of(origins))
