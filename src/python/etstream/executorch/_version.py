# SPDX-License-Identifier: BSD-3-Clause
"""Which ExecuTorch the adaptors fit."""

from __future__ import annotations

from importlib import metadata

FITS = "1.5.1"


def check() -> None:
    """Raises ImportError unless ExecuTorch is installed in the version that etstream.executorch is made for."""
    try:
        found = metadata.version("executorch")
    except metadata.PackageNotFoundError:
        raise ImportError(
            f"etstream.executorch needs ExecuTorch {FITS}, which is not installed: "
            f"pip install executorch=={FITS}"
        ) from None
    if found.partition("+")[0] != FITS:
        raise ImportError(
            f"etstream.executorch fits ExecuTorch {FITS}, found {found}: its adaptors stand in for functions "
            f"inside ExecuTorch. pip install executorch=={FITS}; the rest of etstream works with any version"
        )
