# SPDX-License-Identifier: BSD-3-Clause
"""Plans and writes fat containers: one payload for each backend, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from etstream import _core
from etstream._arguments import alignment, by_name
from etstream._options import Unpack, keywords_of
from etstream._progress import Progress
from etstream._types import OutputLike, SourceLike


class FatContainerOptions(TypedDict, total=False):
    """The options of a fat container."""

    align: Annotated[int | str, 1, """the alignment of each payload in the file, in bytes, a power of two up to 2**30:
        an int, or a str such as "16K". With 1, payloads of distinct bytes give the file that ExecuTorch's native
        backend packs; with a page's size, each payload can be mapped."""]
    share_equal: Annotated[bool, True, "store equal payloads once; to find them, payloads of one size are read."]


@keywords_of(FatContainerOptions)
def plan_fat_container(payloads: Mapping[str, SourceLike], **options: Unpack[FatContainerOptions]) -> _core.FilePlan:
    """Returns the plan of a fat container (NFAT, version 1).

    Args:
        payloads: sources by name, in the order in which a reader prefers them. Names have 1 to 32 characters of ASCII.

    Raises:
        InvalidArgumentError: a name or an alignment is not allowed.
        TooLargeError: there are over 65,536 payloads.
    """
    return _core.plan_fat_container(
        by_name("payloads", payloads), alignment("align", options["align"]), options["share_equal"]
    )


@keywords_of(FatContainerOptions, plan_fat_container)
def write_fat_container(
    payloads: Mapping[str, SourceLike],
    output: OutputLike,
    *,
    max_disk: int | str | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
    **options: Unpack[FatContainerOptions],
) -> _core.FilePlan:
    """Writes what plan_fat_container() plans. Returns the plan, whose size is that of the file."""
    with _core.Inputs():
        plan = plan_fat_container(payloads, **options)
        plan.write(output, sync=sync, progress=progress, max_disk=max_disk)
    return plan
