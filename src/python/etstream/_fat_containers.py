# SPDX-License-Identifier: BSD-3-Clause
"""Writes fat containers: one payload for each backend, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from etstream import _core
from etstream._arguments import alignment, by_name
from etstream._options import Unpack, keywords_of
from etstream._types import OutputLike, SourceLike
from etstream._write import WriteOptions, write


class FatContainerOptions(WriteOptions, total=False):
    """The options of a fat container.

    Keys, besides those of WriteOptions:
        align: the alignment of each payload in the file, in bytes, a power of two up to 2**30: an int, or a str such as
            "16K". With 1, payloads of distinct bytes give the file that ExecuTorch's native backend packs; with a
            page's size, each payload can be mapped.
        dedup: store equal payloads once; to find them, payloads of one size are read.
    """

    align: Annotated[int | str, 1]
    dedup: Annotated[bool, True]


@keywords_of(FatContainerOptions)
def fat_pack(
    payloads: Mapping[str, SourceLike], output: OutputLike | None = None, **options: Unpack[FatContainerOptions]
) -> _core.FilePlan:
    """Writes a fat container (NFAT, version 1). Returns the plan, whose size is that of the file.

    Args:
        payloads: sources by name, in the order in which a reader prefers them. Names have 1 to 32 characters of ASCII.
        output: where the container goes.
        options: those of FatContainerOptions.

    Raises:
        InvalidArgumentError: a name or an alignment is not allowed.
        TooLargeError: there are over 65,536 payloads.
    """
    with _core.Inputs():
        plan = _core.plan_fat_container(
            by_name("payloads", payloads), alignment("align", options["align"]), options["dedup"]
        )
        write([(plan, output)], options)
    return plan
