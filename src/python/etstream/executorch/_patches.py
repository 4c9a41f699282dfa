# SPDX-License-Identifier: BSD-3-Clause
"""Functions of ours in the place of ExecuTorch's, and these back again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

from etstream.executorch._internals import Lookup

_lock = threading.RLock()
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


@dataclass(frozen=True, eq=False)
class _Target:
    """A patch and what it was found to be about."""

    owner: Any
    name: str
    original: Any
    replacement: Any
    is_everywhere: bool

    def places(self) -> list[tuple[Any, str]]:
        places = [(self.owner, self.name)]
        if self.is_everywhere:
            places += [place for place in _places_of(self.original) if place[0] is not self.owner]
        return places


@dataclass(frozen=True)
class _Replaced:
    namespace: Any
    name: str
    target: _Target


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
        self._replaced: list[_Replaced] = []
        self._entered = 0

    @property
    def is_in_place(self) -> bool:
        """Whether anyone has entered the set and not left it."""
        with _lock:
            return self._entered > 0

    def __enter__(self) -> PatchSet:
        """Raises one ImportError that names all that this ExecuTorch and this torch do not have."""
        with _lock:
            if self._entered == 0:
                self._apply(self._targets())
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

    def _targets(self) -> list[_Target]:
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
            is_everywhere = isinstance(owner, ModuleType) and not patch.only_there
            targets.append(
                _Target(owner, patch.name, original, patch.replacement(original), is_everywhere)
            )
        lookup.finish()
        return targets

    def _apply(self, targets: list[_Target]) -> None:
        try:
            for target in targets:
                for namespace, name in target.places():
                    setattr(namespace, name, target.replacement)
                    self._replaced.append(_Replaced(namespace, name, target))
        except BaseException:
            self._revert()
            raise

    def _revert(self) -> None:
        for target in dict.fromkeys(replaced.target for replaced in self._replaced):
            if not target.is_everywhere:
                continue
            # Whoever imported it meanwhile, `__main__` for one, has the replacement.
            for module, name in _places_of(target.replacement):
                setattr(module, name, target.original)
        for replaced in reversed(self._replaced):
            if replaced.target.original is _ABSENT:
                delattr(replaced.namespace, replaced.name)
            else:
                setattr(replaced.namespace, replaced.name, replaced.target.original)
        self._replaced.clear()


def _places_of(value: Any) -> Iterator[tuple[ModuleType, str]]:
    """Where modules have `value` under a name; but for etstream's own, which keep what they define."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "etstream" or not isinstance(module, ModuleType):
            continue
        for name, found in list(vars(module).items()):
            if found is value:
                yield module, name
