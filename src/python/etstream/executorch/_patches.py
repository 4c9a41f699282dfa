# SPDX-License-Identifier: BSD-3-Clause
"""Looks up internals of ExecuTorch and torch by name, replaces its functions by etstream's, and counts the calls."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from etstream._package import version_of
from etstream.results import Result

_PACKAGES = ("executorch", "torch")
_ABSENT = object()


def expect_installed() -> None:
    """Raises ImportError unless ExecuTorch and torch are installed, in any version."""
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise ImportError(
            f"etstream.executorch needs {' and '.join(missing)}, not installed here: pip install 'etstream[executorch]'"
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
        raise TypeError(f"{feature}: expected an ExecutorchProgramManager, found {type(manager).__name__}{hint}")
    return attribute(feature, manager, name)


def attribute(feature: str, value: object, name: str) -> Any:
    """Returns an attribute of an object of ExecuTorch. Raises ImportError if the object's class no longer has it."""
    found = getattr(value, name, _ABSENT)
    if found is _ABSENT:
        lookup = Lookup(feature)
        lookup.miss(f"{type(value).__module__}.{type(value).__qualname__}.{name}")
        lookup.finish()
    return found


_logger = logging.getLogger("etstream")
_lock = threading.RLock()
_counts_lock = threading.Lock()


@dataclass(frozen=True)
class Patch:
    """A replacement for the attribute `name` of `owner`."""

    owner: str
    """A module, or a class: "package.module:Class"."""
    name: str
    replacement: Callable[[Any], Any]
    """A function that gets the present value, and returns the new one."""
    only_there: bool = False
    """True to leave alone the modules that have imported it; the owner need not have it then, as with a builtin."""


def instead(value: Any) -> Callable[[Any], Any]:
    """Returns a replacement for a Patch that ignores the present value."""
    return lambda _: value


def module_with(module: ModuleType, **attributes: Any) -> Callable[[Any], Any]:
    """Returns a replacement for a Patch of a module: the same module, with these attributes in the place of its own."""
    return instead(SimpleNamespace(**{**vars(module), **attributes}))


class PatchSet:
    """Patches that are in place while anyone has entered the set. Thread-safe; all threads see them.

    A function is replaced in every module that has imported it, and is put back there. Either all patches are in place,
    or none is.
    """

    def __init__(self, feature: str, find: Callable[[], Sequence[Patch]], needs: Sequence[str] = ()) -> None:
        """Takes `find`, which is called when the patches are put in place, so that modules they need are imported only
        then.

        `feature` is what the patches are for, as an error says it, and `needs` are further names that it needs, see
        Lookup.find().
        """
        self._feature = feature
        self._find = find
        self._needs = needs
        self._undo = ExitStack()
        self._entered = 0

    def __enter__(self) -> PatchSet:
        """Puts the patches in place. Raises one ImportError with all names that ExecuTorch and torch lack."""
        with _lock:
            if self._entered == 0:
                self._undo = self._applied()
            self._entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            if self._entered == 0:
                return
            self._entered -= 1
            if self._entered == 0:
                self._undo.close()

    @property
    def in_place(self) -> bool:
        """True if anyone has entered the set."""
        return self._entered > 0

    def _applied(self) -> ExitStack:
        """Puts the patches in place. Closing the result puts the earlier values back."""
        lookup = Lookup(self._feature)
        targets = []
        for name in self._needs:
            lookup.find(name)
        for patch in self._find():
            owner = lookup.find(patch.owner)
            if owner is None:
                continue
            original = vars(owner).get(patch.name, _ABSENT)
            if original is _ABSENT and not patch.only_there:
                lookup.miss(f"{patch.owner}.{patch.name}")
                continue
            targets.append((patch, owner, original, patch.replacement(original)))
        lookup.finish()
        with ExitStack() as undo:
            for patch, owner, original, replacement in targets:
                setattr(owner, patch.name, replacement)
                undo.callback(_put, owner, patch.name, original)
                if isinstance(owner, ModuleType) and not patch.only_there:
                    # Modules that imported it meanwhile, such as `__main__`, get the original back too.
                    undo.callback(_put_everywhere, replacement, original)
                    _put_everywhere(original, replacement)
            return undo.pop_all()


def _put(owner: Any, name: str, value: Any) -> None:
    if value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _put_everywhere(value: Any, other: Any) -> None:
    """Puts `other` wherever modules have `value`, except in etstream's own, which keep what they define."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "etstream" or not isinstance(module, ModuleType):
            continue
        for name in [name for name, found in list(vars(module).items()) if found is value]:
            setattr(module, name, other)


class FunctionUse(Result, frozen=False):
    """The counts of calls of a function that etstream stands in for."""

    name: str
    """The full name, such as "executorch.exir._serialize._program.serialize_pte_binary"."""
    used: int = 0
    """The number of calls that etstream carried out."""
    left: Counter[str] = field(default_factory=Counter)
    """The numbers of calls that were left to ExecuTorch, by the reason."""
    failed: int = 0
    """The number of calls in which etstream raised an error."""

    def __str__(self) -> str:
        said = [f"{self.name}: {self.used} through etstream"]
        said += [f"{times} left to ExecuTorch: {reason}" for reason, times in self.left.items()]
        said += [f"{self.failed} failed"] * bool(self.failed)
        return "; ".join(said)


_left: ContextVar[list[str] | None] = ContextVar("etstream_left", default=None)
"""The reasons why the present call was left to ExecuTorch; None outside of calls."""


def leave_to_executorch(reason: object) -> None:
    """Notes that ExecuTorch's own function does what was asked for, and why."""
    reasons = _left.get()
    if reasons is not None:
        reasons.append(str(reason))


def counted(patch: Patch, uses: dict[str, FunctionUse]) -> Patch:
    """Returns the same patch with a function that counts its calls in `uses`; returns other patches as they are."""

    def replacement(original: Any) -> Any:
        ours = patch.replacement(original)
        if not isinstance(ours, FunctionType):
            return ours
        name = f"{patch.owner.replace(':', '.')}.{patch.name}"
        with _counts_lock:
            use = uses.setdefault(name, FunctionUse(name=name))
        return _counting(ours, use)

    return Patch(patch.owner, patch.name, replacement, patch.only_there)


def _counting(function: Callable[..., Any], use: FunctionUse) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        reasons: list[str] = []
        token = _left.set(reasons)
        failed = True
        try:
            result = function(*args, **kwargs)
            failed = False
            return result
        finally:
            _left.reset(token)
            with _counts_lock:
                if reasons:
                    use.left[reasons[0]] += 1
                elif failed:
                    use.failed += 1
                else:
                    use.used += 1
            if reasons:
                _logger.debug("%s: left to ExecuTorch: %s", use.name, reasons[0])
            else:
                _logger.debug("%s: %s", use.name, "failed" if failed else "through etstream")

    return call
