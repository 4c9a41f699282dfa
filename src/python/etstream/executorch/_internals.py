# SPDX-License-Identifier: BSD-3-Clause
"""What lies inside ExecuTorch and torch: looked up by name when a feature is used, as releases differ in it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from etstream._writers import version_of

_PACKAGES = ("executorch", "torch")
_ABSENT = object()


def expect_installed() -> None:
    """Raises ImportError unless ExecuTorch and torch are there, in whatever version."""
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise ImportError(
            f"etstream.executorch needs {' and '.join(missing)}, not installed here: "
            "pip install 'etstream[executorch]'"
        )


class Lookup:
    """Finds what a feature needs, and keeps what it does not find."""

    def __init__(self, feature: str) -> None:
        self._feature = feature
        self._missing: list[str] = []

    def find(self, name: str) -> Any:
        """What `name` is, "package.module" or "package.module:Class.attribute"; None if it is not there."""
        module, _, path = name.partition(":")
        try:
            found: Any = importlib.import_module(module)
        except Exception as error:  # whatever the module runs
            self._missing.append(f"{module} ({error})")
            return None
        for attribute in path.split(".") if path else ():
            found = getattr(found, attribute, _ABSENT)
        if found is _ABSENT:
            self.miss(name)
            return None
        return found

    def miss(self, name: str) -> None:
        """Takes note that `name` is not there."""
        self._missing.append(name.replace(":", "."))

    def finish(self) -> None:
        """Raises one ImportError that names all that was not found, and the versions."""
        if self._missing:
            found = " and ".join(f"{package} {version_of(package) or '(of no known version)'}" for package in _PACKAGES)
            missing = ", ".join(dict.fromkeys(self._missing))
            raise ImportError(f"{self._feature} needs what {found} do not have: {missing}")


def needed(feature: str, *names: str) -> Sequence[Any]:
    """What `names` are, as Lookup.find() takes them. Raises one ImportError that has all that are not there."""
    lookup = Lookup(feature)
    found = [lookup.find(name) for name in names]
    lookup.finish()
    return found


def of_manager(feature: str, manager: object, name: str) -> Any:
    """An attribute of an ExecutorchProgramManager. Raises TypeError for another object, and what attribute() does."""
    (expected,) = needed(feature, "executorch.exir:ExecutorchProgramManager")
    if not isinstance(manager, expected):
        hint = ": call its to_executorch() first" if hasattr(manager, "to_executorch") else ""
        raise TypeError(
            f"{feature}: expected an ExecutorchProgramManager, found {type(manager).__name__}{hint}"
        )
    return attribute(feature, manager, name)


def attribute(feature: str, value: object, name: str) -> Any:
    """An attribute of an object of ExecuTorch's. Raises ImportError if its class does not have it any more."""
    found = getattr(value, name, _ABSENT)
    if found is _ABSENT:
        lookup = Lookup(feature)
        lookup.miss(f"{type(value).__module__}.{type(value).__qualname__}.{name}")
        lookup.finish()
    return found
