# SPDX-License-Identifier: BSD-3-Clause
"""Warnings that point at the line of the caller."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class RulesWarning(UserWarning):
    """Rules for names met nothing, or tensors met no rule."""

    names: list[str]
    """All of these rules, by their patterns, or of these tensors."""

    def __init__(self, message: str, names: list[str]) -> None:
        super().__init__(message)
        self.names = names


def warn(message: str | Warning) -> None:
    """Has the warning be of the line, outside of this package, from which it was called."""
    level = 2
    frame = sys._getframe(1)
    # A context manager is entered by way of contextlib.
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or frame.f_globals.get("__name__") == "contextlib"
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level)
