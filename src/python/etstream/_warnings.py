# SPDX-License-Identifier: BSD-3-Clause
"""Gives warnings that point at the caller's line."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class RulesWarning(UserWarning):
    """A warning of rules for names that met no tensor, or of tensors that met no rule."""

    names: list[str]
    """The patterns of all these rules, or the names of all these tensors."""

    def __init__(self, message: str, names: list[str]) -> None:
        super().__init__(message)
        self.names = names


def warn(message: str | Warning) -> None:
    """Gives a warning that points at the line, outside of this package, from which it was called."""
    level = 2
    frame = sys._getframe(1)
    # Context managers are entered through contextlib.
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or frame.f_globals.get("__name__") == "contextlib"
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level)
