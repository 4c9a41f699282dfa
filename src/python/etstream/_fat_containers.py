# SPDX-License-Identifier: BSD-3-Clause
"""Plans and writes fat containers: one payload for each backend, in one file."""

from __future__ import annotations

from collections.abc import Mapping

from etstream import _core
from etstream._arguments import alignment, by_name
from etstream._progress import Progress
from etstream._types import OutputLike, SourceLike


def plan_fat_container(
    payloads: Mapping[str, SourceLike], *, align: int | str = 1, share_equal: bool = True
) -> _core.FilePlan:
    """Returns the plan of a fat container (NFAT, version 1).

    Args:
        payloads: sources by name, in the order in which a reader prefers them. Names have 1 to 32 characters of ASCII.
        align: the alignment of each payload in the file, in bytes, a power of two up to 2**30. With 1, payloads of
            distinct bytes give the file that ExecuTorch's native backend packs; with a page's size, each payload can be
            mapped.
        share_equal: store equal payloads once; to find them, payloads of one size are read.

    Raises:
        InvalidArgumentError: a name or an alignment is not allowed.
        TooLargeError: there are over 65,536 payloads.
    """
    return _core.plan_fat_container(by_name("payloads", payloads), alignment("align", align), share_equal)


def write_fat_container(
    payloads: Mapping[str, SourceLike],
    output: OutputLike,
    *,
    align: int | str = 1,
    share_equal: bool = True,
    max_disk: int | str | None = None,
    sync: bool = True,
    progress: Progress | bool | None = None,
) -> _core.FilePlan:
    """Writes a fat container: plans it as plan_fat_container() does, and writes it as FilePlan.write() does.

    Returns the plan, whose size is that of the file. FatContainerFile reads it.
    """
    with _core.Inputs():
        plan = plan_fat_container(payloads, align=align, share_equal=share_equal)
        plan.write(output, sync=sync, progress=progress, max_disk=max_disk)
    return plan
