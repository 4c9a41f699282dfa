# SPDX-License-Identifier: BSD-3-Clause
"""The writers that are installed, whose bytes files get."""

from __future__ import annotations

import functools
from importlib import metadata

from etstream import _core


@functools.cache
def installed_flatbuffers() -> str | None:
    """The version of the Python package flatbuffers, which ExecuTorch would write with; None for the latest."""
    version = version_of("flatbuffers")
    return version if version and _core.is_flatbuffers(version) else None


@functools.cache
def installed_executorch() -> str | None:
    """The release of ExecuTorch; None for the latest, as which later ones are taken."""
    version = version_of("executorch")
    return version if version and _core.is_release(version) else None


def version_of(package: str) -> str | None:
    """The installed version; None for none that is known."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
