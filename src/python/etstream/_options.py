# SPDX-License-Identifier: BSD-3-Clause
"""Gives functions the keywords that a TypedDict lists, each with its type and its default."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
else:
    Unpack = dict  # only annotations of `**options` have it, which are replaced

Function = TypeVar("Function", bound=Callable[..., Any])


def defaults_of(kind: type[Any]) -> dict[str, Any]:
    """Returns the keys of a TypedDict of options with their defaults."""
    return {key: hint.__metadata__[0] for key, hint in get_type_hints(kind, include_extras=True).items()}


def keywords_of(kind: type[Any]) -> Callable[[Function], Function]:
    """Returns a decorator for a function whose last parameter is `**options: Unpack[kind]`, for a TypedDict.

    The function gets all keys, and its signature has them. A keyword that it does not have is a TypeError that names
    close ones.
    """
    defaults = defaults_of(kind)
    keys = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=value) for key, value in defaults.items()]

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, rest = signature.parameters.values()
        known = signature.replace(parameters=sorted([*keys, *own], key=lambda one: one.kind))

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in known.parameters:
                    close = " or ".join(map(repr, difflib.get_close_matches(name, known.parameters)))
                    found = f"{name!r}; did you mean {close}?" if close else repr(name)
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {found}")
            return function(*args, **{**defaults, **given})

        hints = {name: hint for name, hint in function.__annotations__.items() if name != rest.name}
        call.__annotations__ = {**hints, **get_type_hints(kind)}
        vars(call)["__signature__"] = known
        return call  # type: ignore[return-value]

    return decorate
