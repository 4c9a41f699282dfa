# SPDX-License-Identifier: BSD-3-Clause
"""Etstream in the place of ExecuTorch's own serialization."""

from __future__ import annotations

from etstream.executorch import _bundles, _bundling, _etrecord, _flatc, _programs
from etstream.executorch._patches import Patch, PatchSet


def _patches() -> list[Patch]:
    return [
        *_programs.patches(),
        *_bundling.patches(),
        *_bundles.patches(),
        *_etrecord.patches(),
        *_flatc.patches(),
    ]


_installed = PatchSet("install()", _patches, (*_programs.NEEDS, *_etrecord.NEEDS))


class Installation:
    """What install() put in place; leaving its context is an uninstall()."""

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *_: object) -> None:
        uninstall()


def install() -> Installation:
    """Has ExecuTorch's own functions save through etstream, in all threads, until uninstall().

    Stands in for serialize_pte_binary, and so for to_executorch(), save() and write_to_file() of an
    ExecutorchProgramManager; for the serialization of tensor data (.ptd), of bundled programs, also back to
    their dataclasses, and of ETRecords; and for flatc, which XNNPACK and others run for each graph, and
    the Inspector for each ETDump. Bytes and types stay the same; payloads are not copied, but into what has
    to be returned as bytes. What etstream refuses is left to ExecuTorch.

    May be called again: each call wants an uninstall() of its own, or to be used as a context manager::

        with etstream.executorch.install():
            manager = edge.to_executorch()

    Raises:
        ImportError: what this ExecuTorch or this torch does not have of what it replaces; nothing is replaced then.
    """
    _installed.__enter__()
    return Installation()


def uninstall() -> None:
    """Undoes one install(); with the last, ExecuTorch's functions are as they were. Does nothing otherwise."""
    _installed.__exit__()
