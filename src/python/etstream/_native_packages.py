# SPDX-License-Identifier: BSD-3-Clause
"""Plans and writes packages of ExecuTorch's native backend (.ptn): a graph and its constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from etstream import _core
from etstream._arguments import alignment, asked, names
from etstream._errors import InvalidArgumentError
from etstream._options import Unpack, keywords_of
from etstream._types import OutputLike, SourceLike
from etstream._weights import OneOfWeights, checkpoints_of
from etstream._write import WriteOptions, write


class NativePackageOptions(WriteOptions, total=False):
    """The options of a package of ExecuTorch's native backend.

    Keys, besides those of WriteOptions:
        mutable: names of constants that are state, in addition to those that the graph changes.
        align: the alignment of members, and of constants whose size is a multiple of it, in bytes, a power of two up to
            2**15: an int, or a str such as "16K".
        modified: the year, month, day, hour, minute and second that the graph is stamped with; by default those of
            SOURCE_DATE_EPOCH, or the local time, as in ExecuTorch.
    """

    mutable: Annotated[Iterable[str], ()]
    align: Annotated[int | str, 1]
    modified: Annotated[Sequence[int] | None, None]


@keywords_of(NativePackageOptions)
def ptn(
    graph: SourceLike,
    constants: OneOfWeights | tuple[()] = (),
    output: OutputLike | None = None,
    **options: Unpack[NativePackageOptions],
) -> _core.FilePlan:
    """Writes a package (.ptn), byte for byte as ExecuTorch's write_ptn does. Returns the plan, whose size is that of
    the file.

    Args:
        graph: a source with the graph, a flatbuffer with the identifier NPTG.
        constants: at least the constants that the graph asks for: a mapping of names to tensors (torch's on the CPU,
            NumPy's or etstream's, in place where they are contiguous), a Checkpoint, or a path that Checkpoint takes.
        output: where the package goes.
        options: those of NativePackageOptions.

    Reads all bytes of the constants, as their checksum stands before them.

    Raises:
        InvalidArgumentError: the source is no graph, a constant that it asks for is missing, or state shares memory
            with another constant.
        UnsupportedError: a constant has a type that packages do not support.
    """
    keys = names("mutable", options["mutable"])
    constants = {} if isinstance(constants, tuple) else asked(constants)
    with _core.Inputs(constants):
        if isinstance(constants, Mapping):
            _check_apart(constants, {*keys, *_core.mutable_keys_of_graph(graph)})
        plan = _core.plan_native_package(
            graph,
            checkpoints_of([constants])[0],
            keys,
            alignment("align", options["align"]),
            None if options["modified"] is None else list(options["modified"])[:6],
        )
        write([(plan, output)], options)
    return plan


def _check_apart(constants: Mapping[str, Any], mutable: set[str]) -> None:
    """Refuses state whose tensor shares a storage, as write_ptn does; later copies would separate the two."""
    by_storage: dict[tuple[str, int], list[str]] = {}
    for key, value in constants.items():
        storage = getattr(value, "untyped_storage", None)
        if storage is not None and value.numel() != 0:
            by_storage.setdefault((str(value.device), storage().data_ptr()), []).append(key)
    for keys in by_storage.values():
        if len(keys) > 1 and mutable.intersection(keys):
            raise InvalidArgumentError(
                f"constants {', '.join(map(repr, sorted(keys)))} share memory, and one of them is changed: a package "
                "can't say that they are one state; use one name for all"
            )
