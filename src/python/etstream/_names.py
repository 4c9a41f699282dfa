# SPDX-License-Identifier: BSD-3-Clause
"""Sets the names by which users know functions and classes."""

from __future__ import annotations

from types import ModuleType
from typing import get_type_hints


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
