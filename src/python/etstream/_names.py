# SPDX-License-Identifier: BSD-3-Clause
"""What users call functions and classes."""

from __future__ import annotations

from types import ModuleType
from typing import get_type_hints


def present(module: ModuleType) -> None:
    """Has what a module offers be called that module's in messages, help() and pickles."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type):
            hints = get_type_hints(value)  # where it is defined, which is not known any more afterwards
            value.__annotations__ = {field: hints[field] for field in value.__annotations__}
        if callable(value):
            value.__module__ = module.__name__
