# SPDX-License-Identifier: BSD-3-Clause
"""What there is to say of files."""

from __future__ import annotations

from typing import Any

from etstream import _core


def verify(file: Any, *weights: Any) -> _core.Findings:
    """Whether a file is sound, and fits the .ptd files that it is to run with.

    Args:
        file: a source: a .pte, .ptd, .bpte, safetensors or GGUF file.
        weights: sources: .ptd files, for a .pte or .bpte.

    Returns:
        At most 100 errors and 100 warnings of each file; true where there is no error.

    Raises:
        UnsupportedError: the file is of another kind.
    """
    return _core.verify(file, weights)
