# SPDX-License-Identifier: BSD-3-Clause
"""Tells of the package: the names by which users know its parts, the installed writers, and warnings."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from importlib import metadata
from types import ModuleType
from typing import get_type_hints

from etstream import _core


def present(module: ModuleType) -> None:
    """Gives a module's functions and classes that module's name, for messages, help() and pickles."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type):
            # Resolved where the class is defined, which is unknown afterwards.
            hints = get_type_hints(value, include_extras=True)
            value.__annotations__ = {field: hints[field] for field in value.__annotations__}
        if callable(value):
            value.__module__ = module.__name__


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
