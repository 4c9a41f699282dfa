# SPDX-License-Identifier: BSD-3-Clause
"""Functions of ours in the place of ExecuTorch's, and these back again; and which of the two were called."""

from __future__ import annotations

import functools
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

from etstream.executorch._internals import Lookup

_logger = logging.getLogger("etstream")
_lock = threading.RLock()
_counts_lock = threading.Lock()
_ABSENT = object()


@dataclass(frozen=True)
class Patch:
    """What is called `name` in `owner`, and what is to stand there."""

    owner: str
    """A module, or a class: "package.module:Class"."""
    name: str
    replacement: Callable[[Any], Any]
    """Gets what stands there, and gives what is to."""
    only_there: bool = False
    """Not also in the modules that have imported it; and the owner need not have it, as with a builtin."""


def instead(value: Any) -> Callable[[Any], Any]:
    """For a Patch whose replacement does without what it replaces."""
    return lambda _: value


def module_with(module: ModuleType, **attributes: Any) -> Callable[[Any], Any]:
    """For a Patch in whose owner a module is to have these attributes in the place of its own."""
    return instead(SimpleNamespace(**{**vars(module), **attributes}))


class PatchSet:
    """Patches that are in place while anyone has entered the set. Thread-safe; all threads see them.

    A function is replaced in every module that has imported it, and there is put back. All are in place, or none.
    """

    def __init__(
        self, feature: str, find: Callable[[], Sequence[Patch]], needs: Sequence[str] = ()
    ) -> None:
        """`find` is called when the patches are put in place, so that what they need is imported then.

        `feature` is what an error says that the patches are for, and `needs` what it takes beside them, as
        Lookup.find() has it.
        """
        self._feature = feature
        self._find = find
        self._needs = needs
        self._undo = ExitStack()
        self._entered = 0

    def __enter__(self) -> PatchSet:
        """Raises one ImportError that names all that this ExecuTorch and this torch do not have."""
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
        """Tells whether anyone has entered it."""
        return self._entered > 0

    def _applied(self) -> ExitStack:
        """Puts the patches in place. Closing what it returns puts back what was there."""
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
                    # Back also for whoever imported it meanwhile, `__main__` for one.
                    undo.callback(_put_everywhere, replacement, original)
                    _put_everywhere(original, replacement)
            return undo.pop_all()


def _put(owner: Any, name: str, value: Any) -> None:
    if value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _put_everywhere(value: Any, other: Any) -> None:
    """Has `other` stand wherever modules have `value`; but for etstream's own, which keep what they define."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "etstream" or not isinstance(module, ModuleType):
            continue
        for name in [name for name, found in list(vars(module).items()) if found is value]:
            setattr(module, name, other)


@dataclass
class FunctionUse:
    """How often a function was called that etstream stands in for."""

    name: str
    """ "executorch.exir._serialize._program.serialize_pte_binary"."""
    used: int = 0
    """By etstream."""
    left: Counter[str] = field(default_factory=Counter)
    """Left to ExecuTorch: how often, by the reason."""
    failed: int = 0
    """Calls of etstream that raised an error."""

    def __str__(self) -> str:
        said = [f"{self.name}: {self.used} through etstream"]
        said += [f"{times} left to ExecuTorch: {reason}" for reason, times in self.left.items()]
        said += [f"{self.failed} failed"] * bool(self.failed)
        return "; ".join(said)


_left: ContextVar[list[str] | None] = ContextVar("etstream_left", default=None)
"""Why the call that is being made was left to ExecuTorch, once it was."""


def leave_to_executorch(reason: object) -> None:
    """Takes note that ExecuTorch's own function does what was asked for, and why."""
    reasons = _left.get()
    if reasons is not None:
        reasons.append(str(reason))


def counted(patch: Patch, uses: dict[str, FunctionUse]) -> Patch:
    """The same patch, whose function counts its calls in `uses`; one that replaces something else as it is."""

    def replacement(original: Any) -> Any:
        ours = patch.replacement(original)
        if not isinstance(ours, FunctionType):
            return ours
        name = f"{patch.owner.replace(':', '.')}.{patch.name}"
        with _counts_lock:
            use = uses.setdefault(name, FunctionUse(name))
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
