# SPDX-License-Identifier: BSD-3-Clause
"""The writers whose bytes files get."""

from __future__ import annotations

import functools
from importlib import metadata


@functools.cache
def installed_flatbuffers() -> str | None:
    """The version of the Python package flatbuffers that is installed, which ExecuTorch would write with; None
    where there is none."""
    try:
        return metadata.version("flatbuffers")
    except metadata.PackageNotFoundError:
        return None
