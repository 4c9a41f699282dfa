# SPDX-License-Identifier: BSD-3-Clause
"""Moves the weights that programs have in common into one file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple, TypedDict

from etstream import _core
from etstream._arguments import alignment, asked, by_name, path, several, size
from etstream._errors import InvalidArgumentError
from etstream._options import Unpack, keywords_of
from etstream._programs import shard_outputs
from etstream._progress import Progress
from etstream._types import OutputLike, SourceLike


class SharedWeightsPlan(NamedTuple):
    """The plans of programs, and of the file or the shards from which they get the weights that they share."""

    programs: dict[str, _core.FilePlan]
    """The plans of the programs in the given order; a program that shares nothing is copied."""
    weights: _core.FilePlan | None
    """The plan of the tensor data; None if the programs have nothing in common, and with split_max_size."""
    container: _core.FilePlan | None
    """The plan of a fat container of the programs, if it was asked for."""
    report: dict[str, Any]
    """A report of which programs share which data, and what stays where, as `etstream share --json` gives it."""
    shards: tuple[_core.FilePlan, ...] = ()
    """The plans of shards that replace `weights` with split_max_size."""


class SharingOptions(TypedDict, total=False):
    """The options of programs that share weights. Sizes are in bytes: an int, or a str such as "4K"."""

    least_size: Annotated[int | str, 512, "the size of the smallest data that moves, at least 1."]
    align: Annotated[int | str, 1, "the alignment of programs in a fat container, a power of two up to 2**30."]
    split_max_size: Annotated[int | str | None, None, """write several files of tensor data, each with at most this many
        bytes of data, in the order of keys; see write_tensor_data_shards()."""]


@keywords_of(SharingOptions)
def plan_shared_weights(
    programs: Mapping[str, SourceLike], *, container: bool = False, **options: Unpack[SharingOptions]
) -> SharedWeightsPlan:
    """Returns the plans of programs without the weights that they have in common, and of one .ptd file with these.

    Each program runs with the .ptd file as it did without it. Constants and named data of equal bytes move. Data that
    only one program has stays in it, and so does the data of delegates.

    Args:
        programs: sources of .pte files, by the names that the report and the container give them.
        container: also plan a fat container of the resulting programs.

    Raises:
        CorruptError: a program is damaged.
        InvalidArgumentError: there are fewer than two programs, or a container can't have a name.
    """
    planned, files, packed, report = _core.plan_shared_weights(
        by_name("programs", programs),
        size("least_size", options["least_size"]),
        container,
        alignment("align", options["align"]),
        size("split_max_size", options["split_max_size"]),
    )
    plans = dict(zip(programs, planned))
    if options["split_max_size"] is not None:
        return SharedWeightsPlan(plans, None, packed, json.loads(report), tuple(files))
    return SharedWeightsPlan(plans, files[0] if files else None, packed, json.loads(report))


@keywords_of(SharingOptions, plan_shared_weights)
def share_weights(
    programs: Mapping[str, SourceLike] | Iterable[str | os.PathLike[str]],
    weights: OutputLike,
    *,
    folder: str | os.PathLike[str] | None = None,
    fat: OutputLike | None = None,
    max_disk: int | str | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
    **options: Unpack[SharingOptions],
) -> SharedWeightsPlan:
    """Moves the weights that programs have in common into one .ptd file, as plan_shared_weights() plans it.

    Args:
        programs: sources by name, or paths; a path's name is that of its file without the ending.
        weights: an output: where the .ptd file goes. With split_max_size it is the path that shards are named after:
            NAME-00001-of-00003.ptd.
        folder: the folder that the programs go to, as NAME.pte; made if it is not there. Names that are paths are
            refused.
        fat: an output too: a fat container of the programs, in which they begin at multiples of `align` bytes.

    All files appear together, or none does, and none of them may be an input. Returns the plan.

    Raises:
        InvalidArgumentError: the programs have nothing in common; neither folder nor fat is given; two paths have one
            name; or, with folder, a name is a path.
    """
    if folder is None and fat is None:
        raise InvalidArgumentError("give a folder for the programs, or a fat container for them, or both")
    folder = asked(folder)
    with _core.Inputs():
        plan = plan_shared_weights(_by_name(programs), container=fat is not None, **options)
        files: list[tuple[_core.FilePlan, OutputLike]] = []
        if plan.shards:
            files += shard_outputs(plan.shards, weights)
        elif plan.weights is not None:
            files.append((plan.weights, weights))
        else:
            raise InvalidArgumentError("the programs have no weights in common that could be shared")
        if folder is not None:
            files += [(each, _core.path_in_folder(folder, f"{name}.pte")) for name, each in plan.programs.items()]
        if plan.container is not None and fat is not None:
            files.append((plan.container, fat))
        with _new_folder(folder, sync):
            _core.write_plans(files, sync=sync, progress=progress, max_disk=max_disk)
    return plan


@contextmanager
def _new_folder(path: str | None, sync: bool) -> Iterator[None]:
    """Makes the folder unless it is there, and removes it again after an error."""
    made = path if path is not None and _core.make_folder(path, sync=sync) else None
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
