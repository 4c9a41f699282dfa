# SPDX-License-Identifier: BSD-3-Clause
"""Sets the names by which users know functions and classes, and completes their help()."""

from __future__ import annotations

import textwrap
from inspect import isfunction
from types import ModuleType
from typing import get_type_hints

from etstream import _core
from etstream._options import add_help
from etstream._types import FORMS


def present(module: ModuleType) -> None:
    """Gives a module's functions and classes that module's name, for messages, help() and pickles, and adds to the
    help() of functions the forms of their arguments and what FilePlan.write() does."""
    for name in module.__all__:
        value = getattr(module, name)
        functions = [value]
        if isinstance(value, type):
            # Resolved where the class is defined, which is unknown afterwards.
            hints = get_type_hints(value, include_extras=True)
            value.__annotations__ = {field: hints[field] for field in value.__annotations__}
            functions = [one for one in vars(value).values() if isfunction(one) and one.__name__[0] != "_"]
        if callable(value):
            value.__module__ = module.__name__
        for function in filter(isfunction, functions):
            types = function.__annotations__
            for kind, forms in FORMS.items():
                if any(kind in str(hint) for hint in types.values()):
                    add_help(function, kind, textwrap.fill(forms, 116))
            if "sync" in types:
                _, _, text = (_core.FilePlan.write.__doc__ or "").partition("\n\n")
                add_help(function, "FilePlan.write()", textwrap.fill(text, 116))
