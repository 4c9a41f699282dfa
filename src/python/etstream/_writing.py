# SPDX-License-Identifier: BSD-3-Clause
"""Gives functions their options as keywords, and writes planned files with the options that all have that write."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar, get_type_hints

from etstream import _core
from etstream._package import warn
from etstream._types import OutputLike

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


Progress = Callable[[int, int], object]


def callback(progress: Progress | bool | None) -> Progress | None:
    """Returns the function to call with the bytes done and the bytes in all; None for no reports."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        warn("progress=True shows nothing: tqdm is not installed")
        return None
    bar = tqdm(unit="B", unit_scale=True, unit_divisor=1024)  # closes at the end, or when it is freed

    def show(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return show


class WriteOptions(TypedDict, total=False):
    """The options of all functions that write. FilePlan.write() tells how an output is written.

    Keys:
        dry_run: write nothing, but check all that can be checked before. The plans are returned, and outputs may be
            missing.
        max_memory: refuse to write with more memory than this, in bytes: an int, or a str such as "16M".
        max_disk: refuse to write more bytes than this in all, such as "4G"; by default 4 times the input where names
            share data.
        sync: have the files on the disk before the function returns.
        progress: called with the bytes done and the bytes of all files; True shows a bar with tqdm.
    """

    dry_run: Annotated[bool, False]
    max_memory: Annotated[int | str | None, None]
    max_disk: Annotated[int | str | None, None]
    sync: Annotated[bool, True]
    progress: Annotated[Progress | bool | None, None]


def written(
    make: Callable[[], _core.FilePlan],
    output: OutputLike | None,
    options: Mapping[str, object],
    replaceable: object = None,
) -> _core.FilePlan:
    """Makes a plan, and writes it to its output as write() does. The output may take the place of the input
    `replaceable`, but of no other. Returns the plan."""
    with _core.Inputs(replaceable):
        plan = make()
        write([(plan, output)], options)
    return plan


def write(files: Sequence[tuple[_core.FilePlan, OutputLike | None]], options: Mapping[str, object]) -> None:
    """Writes each plan to its output, with the values of WriteOptions in `options`. All files appear, or none does."""
    given: dict[str, Any] = {name: options[name] for name in WriteOptions.__annotations__}
    _core.write_plans(files, **given)
