# SPDX-License-Identifier: BSD-3-Clause
"""Functions of ours in the place of ExecuTorch's, and these back again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

_lock = threading.RLock()
_ABSENT = object()


@dataclass(frozen=True)
class Patch:
    """What is called `name` in `owner`, a module or a class, and what is to stand there."""

    owner: Any
    name: str
    replacement: Any
    only_there: bool = False
    """Not also in the modules that have imported it; and the owner need not have it, as with a builtin."""


@dataclass(frozen=True)
class _Replaced:
    namespace: Any
    name: str
    original: Any


class PatchSet:
    """Patches that are in place while anyone has entered the set. Thread-safe; all threads see them.

    A function is replaced in every module that has imported it, and there is put back.
    """

    def __init__(self, find: Callable[[], list[Patch]]) -> None:
        """`find` is called when the patches are first put in place, so that what they need is imported then."""
        self._find = find
        self._patches: list[Patch] | None = None
        self._replaced: list[_Replaced] = []
        self._modules_before: frozenset[str] = frozenset()
        self._entered = 0

    def __enter__(self) -> PatchSet:
        with _lock:
            if self._entered == 0:
                self._apply()
            self._entered += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        with _lock:
            if self._entered == 0:
                return
            self._entered -= 1
            if self._entered == 0:
                self._revert()

    def _apply(self) -> None:
        if self._patches is None:
            self._patches = self._find()
        self._modules_before = frozenset(sys.modules)
        for patch in self._patches:
            own = vars(patch.owner)
            original = own.get(patch.name, _ABSENT) if patch.only_there else own[patch.name]
            places = [(patch.owner, patch.name)]
            if isinstance(patch.owner, ModuleType) and not patch.only_there:
                places += [p for p in _places_of(original) if p[0] is not patch.owner]
            for namespace, name in places:
                setattr(namespace, name, patch.replacement)
                self._replaced.append(_Replaced(namespace, name, original))

    def _revert(self) -> None:
        for patch in self._patches or []:
            if not isinstance(patch.owner, ModuleType) or patch.only_there:
                continue
            original = next(
                r.original for r in self._replaced if r.namespace is patch.owner and r.name == patch.name
            )
            # A module that was imported meanwhile has taken the replacement from where it stood.
            for module, name in _places_of(patch.replacement):
                if module.__name__ not in self._modules_before:
                    setattr(module, name, original)
        for replaced in reversed(self._replaced):
            if replaced.original is _ABSENT:
                delattr(replaced.namespace, replaced.name)
            else:
                setattr(replaced.namespace, replaced.name, replaced.original)
        self._replaced.clear()


def _places_of(value: Any) -> Iterator[tuple[ModuleType, str]]:
    """Where modules have `value` under a name; but for etstream's own, which keep what they define."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "etstream" or not isinstance(module, ModuleType):
            continue
        for name, found in list(vars(module).items()):
            if found is value:
                yield module, name
