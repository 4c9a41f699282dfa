# SPDX-License-Identifier: BSD-3-Clause
"""Finds the installed writers, whose bytes files get."""

from __future__ import annotations

import functools
from importlib import metadata

from etstream import _core


@functools.cache
def installed_flatbuffers() -> str | None:
    """Returns the version of the Python package flatbuffers, with which ExecuTorch would write; None for the latest."""
    version = version_of("flatbuffers")
    return version if version and _core.is_flatbuffers(version) else None


@functools.cache
def installed_executorch() -> str | None:
    """Returns the release of ExecuTorch; None for the latest, which stands for later ones too."""
    version = version_of("executorch")
    return version if version and _core.is_release(version) else None


def version_of(package: str) -> str | None:
    """Returns the installed version of a package; None if it is not known."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
