# SPDX-License-Identifier: BSD-3-Clause
"""What was called in the place of ExecuTorch's functions, and what was left to these."""

from __future__ import annotations

import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from etstream.executorch._patches import Patch

_logger = logging.getLogger("etstream")
_lock = threading.Lock()


@dataclass
class FunctionUse:
    """How often a function was called that etstream stands in for."""

    name: str
    """ "executorch.exir._serialize._program.serialize_pte_binary"."""
    used: int = 0
    """By etstream."""
    left: Counter[str] = field(default_factory=Counter)
    """Left to ExecuTorch: how often, by the reason."""

    def __str__(self) -> str:
        said = [f"{self.name}: {self.used} through etstream"]
        said += [f"{times} left to ExecuTorch: {reason}" for reason, times in self.left.items()]
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
        with _lock:
            use = uses.setdefault(name, FunctionUse(name))
        return _counting(ours, use)

    return Patch(patch.owner, patch.name, replacement, patch.only_there)


def _counting(function: Callable[..., Any], use: FunctionUse) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        reasons: list[str] = []
        token = _left.set(reasons)
        try:
            return function(*args, **kwargs)
        finally:
            _left.reset(token)
            with _lock:
                if reasons:
                    use.left[reasons[0]] += 1
                else:
                    use.used += 1
            if reasons:
                _logger.debug("%s: left to ExecuTorch: %s", use.name, reasons[0])
            else:
                _logger.debug("%s: through etstream", use.name)

    return call
