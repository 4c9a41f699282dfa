# SPDX-License-Identifier: BSD-3-Clause
"""Looks up internals of ExecuTorch and torch by name when a feature is used, as releases differ in them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from etstream._writers import version_of

_PACKAGES = ("executorch", "torch")
_ABSENT = object()


def expect_installed() -> None:
    """Raises ImportError unless ExecuTorch and torch are installed, in any version."""
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise ImportError(
            f"etstream.executorch needs {' and '.join(missing)}, not installed here: "
            "pip install 'etstream[executorch]'"
        )


class Lookup:
    """A search for what a feature needs, which notes the names that it does not find."""

    def __init__(self, feature: str) -> None:
        self._feature = feature
        self._missing: list[str] = []

    def find(self, name: str) -> Any:
        """Returns the object of that name, "package.module" or "package.module:Class.attribute"; None if it is
        missing."""
        module, _, path = name.partition(":")
        try:
            found: Any = importlib.import_module(module)
        except Exception as error:  # the module may raise anything
            self._missing.append(f"{module} ({error})")
            return None
        for attribute in path.split(".") if path else ():
            found = getattr(found, attribute, _ABSENT)
        if found is _ABSENT:
            self.miss(name)
            return None
        return found

    def miss(self, name: str) -> None:
        """Notes that `name` is not there."""
        self._missing.append(name.replace(":", "."))

    def finish(self) -> None:
        """Raises one ImportError with all names that were not found, and the versions."""
        if self._missing:
            found = " and ".join(f"{package} {version_of(package) or '(of no known version)'}" for package in _PACKAGES)
            missing = ", ".join(dict.fromkeys(self._missing))
            raise ImportError(f"{self._feature} needs what {found} do not have: {missing}")


def needed(feature: str, *names: str) -> Sequence[Any]:
    """Returns the objects of these names, see Lookup.find(). Raises one ImportError with all missing names."""
    lookup = Lookup(feature)
    found = [lookup.find(name) for name in names]
    lookup.finish()
    return found


def of_manager(feature: str, manager: object, name: str) -> Any:
    """Returns an attribute of an ExecutorchProgramManager. Raises TypeError for another object; see attribute()."""
    (expected,) = needed(feature, "executorch.exir:ExecutorchProgramManager")
    if not isinstance(manager, expected):
        hint = ": call its to_executorch() first" if hasattr(manager, "to_executorch") else ""
        raise TypeError(
            f"{feature}: expected an ExecutorchProgramManager, found {type(manager).__name__}{hint}"
        )
    return attribute(feature, manager, name)


def attribute(feature: str, value: object, name: str) -> Any:
    """Returns an attribute of an object of ExecuTorch. Raises ImportError if the object's class no longer has it."""
    found = getattr(value, name, _ABSENT)
    if found is _ABSENT:
        lookup = Lookup(feature)
        lookup.miss(f"{type(value).__module__}.{type(value).__qualname__}.{name}")
        lookup.finish()
    return found
