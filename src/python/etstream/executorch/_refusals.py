# SPDX-License-Identifier: BSD-3-Clause
"""Explains why ExecuTorch's runtime, which only gives a number, refuses a program: compares what the program asks for
with what this process has of ExecuTorch."""

from __future__ import annotations

import importlib.util
import mmap
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etstream import _core, bundle, inspect, verify
from etstream._errors import Error, UnsupportedError
from etstream.executorch._patches import Lookup
from etstream.results import MethodSummary

_NUMBER = re.compile(r"0x:?([0-9a-fA-F]+)")
_SHOWN = 10
"""The most names that a message has, as in the library."""
_RUNTIME = "executorch.extension.pybindings.portable_lib"


@dataclass(frozen=True)
class KernelModule:
    """A module of ExecuTorch that registers kernels when it is imported."""

    name: str
    package: str
    file: str
    """A pattern for the file in the package that has the operators' names."""
    words: str
    """The text that an operator has there, with {} for its name."""

    def has(self, operator: str) -> bool:
        spec = importlib.util.find_spec(self.package)
        folders = (spec.submodule_search_locations or []) if spec is not None else []
        wanted = self.words.format(operator).encode()
        return any(_contains(path, wanted) for folder in folders for path in Path(folder).glob(self.file))


_LLM = "executorch.extension.llm.custom_ops"
_QUANTIZED = "executorch.kernels.quantized"
_KERNEL_MODULES = (
    KernelModule(_QUANTIZED, _QUANTIZED, "quantized.yaml", "func: {}("),
    KernelModule(f"{_LLM}.custom_ops", _LLM, "*custom_ops_aot_lib.*", "{}\0"),
)


@dataclass(frozen=True)
class Attempt:
    """An attempt to load or run a method."""

    program: _core.Source
    method: str
    weights: Sequence[Any] = ()
    """Sources, or paths, of the .ptd files that the attempt was given."""
    inputs: Sequence[Any] | None = None
    """None if etstream has already found that they fit."""


def refusal(error: RuntimeError, attempt: Attempt) -> str:
    """Returns ExecuTorch's message, with the cause."""
    said = f"ExecuTorch says: {error}"
    number = _NUMBER.search(str(error))
    causes, words = _CAUSES.get(int(number[1], 16), ((), "")) if number else ((), "")
    try:
        found = next(filter(None, (cause(attempt) for cause in causes)), words)
    except Error:  # the program can't be read, so the words for the number have to do
        found = words
    return f"{said}: {found}" if found else said


def _operators(attempt: Attempt) -> str | None:
    here = _registered("_get_operator_names")
    missing = [called.name for each in _methods(attempt) for called in each.operators if called.name not in here]
    if here and not missing:
        return (
            "its operators have kernels here, but none for the dtypes or the orders of dimensions of some call, "
            "which ExecuTorch's log names"
        )
    if not missing:
        return None
    modules = [module for module in _KERNEL_MODULES if any(map(module.has, missing))]
    registers = " and ".join(f"`import {module.name}`" for module in modules)
    registers = registers or f"import what registers {'it' if len(missing) == 1 else 'them'}"
    return f"{_subject('operator', missing)} no kernel here; {registers} first"


def _backends(attempt: Attempt) -> str | None:
    here = _registered("_get_registered_backend_names")
    asked = dict.fromkeys(called.backend for each in _methods(attempt) for called in each.delegates)
    missing = [name for name in asked if name not in here]
    if here and missing:
        return f"{_subject('backend', missing)} not been registered here; there are {', '.join(map(repr, here))}"
    is_available = Lookup("").find(f"{_RUNTIME}:_is_available")
    unavailable = [name for name in asked if here and is_available and not is_available(name)]
    return f"{_subject('backend', unavailable)} been registered, but can't run here" if unavailable else None


def _keys(attempt: Attempt) -> str | None:
    keys = _core.ProgramFile(attempt.program).external_keys
    there = {entry.key for one in attempt.weights for entry in inspect(one).named_data}
    missing = [key for key in keys if key not in there]
    if not missing:
        return None
    count = f"{len(missing)} of the {len(keys)} keys that the program asks for {'is' if len(missing) == 1 else 'are'}"
    if attempt.weights:
        return f"{count} not in the files that weights= has: {_listed(missing)}"
    return f"{count} not in it: {_listed(missing)}; weights= takes the .ptd file with them"


def _unsound(attempt: Attempt) -> str | None:
    """Returns the first error that verify() finds."""
    errors = verify(attempt.program, *attempt.weights).errors
    return errors[0] if errors else None


def _other_kind(attempt: Attempt) -> str | None:
    """Returns the error that a file of weights is of another kind, if there is one."""
    try:
        verify(attempt.program, *attempt.weights)
    except UnsupportedError as error:
        return str(error)
    return None


def _inputs(attempt: Attempt) -> str | None:
    """Returns what does not fit in the inputs, which are checked as those of a test case."""
    if attempt.inputs is None:
        return None
    try:
        bundle(attempt.program, {attempt.method: [_core.TestCase(list(attempt.inputs), [])]}, dry_run=True)
    except (Error, TypeError) as error:
        return str(error).removeprefix(f"method {attempt.method!r}, test case 0: ")
    return None


_CAUSES: dict[int, tuple[tuple[Callable[[Attempt], str | None], ...], str]] = {
    0x02: ((_keys, _unsound), "something that it needs was not given or not set up, such as weights"),
    0x10: ((_inputs, _unsound), "an input does not have the shape that the method was exported with"),
    0x12: ((_inputs, _unsound), "an input does not fit the bounds that the method was exported with"),
    0x14: ((_operators,), "an operator has no kernel here"),
    0x20: ((_backends, _keys, _unsound), "a backend or a key is not here"),
    0x23: (
        (_unsound,),
        "the program was made by or for another version of ExecuTorch, or all of its constants are empty",
    ),
    0x24: ((_other_kind, _keys, _unsound), "the weights are not those that the program was exported with"),
    0x30: ((_backends, _unsound), "the program was lowered for another version of its backend"),
}
"""The checks for each of ExecuTorch's numbers (runtime/core/error.h), and the words if none of them finds a cause."""


def _methods(attempt: Attempt) -> Iterable[MethodSummary]:
    program = inspect(attempt.program).program
    return [] if program is None else [each for each in program.methods if each.name == attempt.method]


def _registered(name: str) -> list[str]:
    """Returns the names that a function of the runtime gives; none if this release has no such function."""
    function = Lookup("").find(f"{_RUNTIME}:{name}")
    return list(function()) if function is not None else []


def _contains(path: Path, wanted: bytes) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return mapped.find(wanted) >= 0


def _subject(noun: str, names: Sequence[str]) -> str:
    return f"{noun} {names[0]!r} has" if len(names) == 1 else f"{len(names)} {noun}s have ({_listed(names)})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
