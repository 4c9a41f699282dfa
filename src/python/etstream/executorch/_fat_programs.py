# SPDX-License-Identifier: BSD-3-Clause
"""Fat containers on the ExecuTorch runtime that is installed: the first payload that it can run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from etstream import _core, verify
from etstream._errors import Error, ExecutionError, NoSuchNameError, UnsupportedError
from etstream.executorch._runtime import loadable_bytes, runtime_function


class FatProgram:
    """A payload of a fat container, loaded; see load_fat(). A context manager. One thread at a time may use it."""

    name: str
    """Of the payload."""
    rejected: dict[str, str]
    """Why those that come before it can't be run here, by their names."""

    def __init__(self, name: str, rejected: dict[str, str], source: _core.Source, weights: str | None) -> None:
        """Raises RuntimeError, with ExecuTorch's words, where that can't run the program."""
        self.name = name
        self.rejected = rejected
        self._program: Any = None
        self._methods: dict[str, Any] = {}
        load = runtime_function("load_fat()", "_load_program_from_buffer")
        findings = verify(source, *([weights] if weights else []))
        if not findings:
            raise UnsupportedError(findings.errors[0])
        self._bytes: Any = loadable_bytes(source)
        self._program = load(self._bytes.bytes, data_path=weights)
        names = map(self._program.get_method_name, range(self._program.num_methods()))
        self._methods = {name: self._program.load_method(name) for name in names}

    def __repr__(self) -> str:
        return f"<etstream.executorch.FatProgram {self.name!r}>"

    def __enter__(self) -> FatProgram:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the program and its file. May be called again."""
        self._methods = {}
        self._program = None
        self._bytes = None  # after what refers to them

    @property
    def methods(self) -> tuple[str, ...]:
        """In the order of the program."""
        return tuple(self._loaded())

    def run(self, inputs: Sequence[Any] = (), method: str = "forward") -> list[Any]:
        """Runs a method, and returns its outputs; tensors are torch's.

        Raises:
            NoSuchNameError: the program has no such method.
            ExecutionError: what ExecuTorch says; its log on stderr says more.
        """
        methods = self._loaded()
        if method not in methods:
            known = ", ".join(map(repr, methods))
            raise NoSuchNameError(f"payload {self.name!r} has no method {method!r}; methods: {known}")
        try:
            outputs: list[Any] = methods[method].call(list(inputs))
        except RuntimeError as error:
            raise ExecutionError(f"payload {self.name!r}: method {method!r}: ExecuTorch says: {error}") from error
        return outputs

    def _loaded(self) -> dict[str, Any]:
        if self._program is None:
            raise ValueError(f"payload {self.name!r} is closed")
        return self._methods


def load_fat(
    path: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | None = None,
    prefer: Iterable[str] = (),
) -> FatProgram:
    """Loads the first payload of a fat container that the installed ExecuTorch runtime can run.

    A payload can be run if it is a sound program, and each of its methods loads: with its operators, its delegates'
    backends, and its weights. It is mapped where it lies in the container if that is at a multiple of 16, as with
    specialize(); otherwise it is copied to memory. What can be run is what this process has of ExecuTorch: import
    first what registers more operators and backends.

    Args:
        path: of the container. Neither it nor the weights are to change while the program is open.
        weights: path of the .ptd file that the payloads share; by default the one beside the container that has its
            name with the suffix .ptd, if there is one.
        prefer: names of payloads to try before the others, which follow in the container's order. Names that the
            container lacks are passed over.

    Raises:
        UnsupportedError: no payload can be run; says of each why not.
        CorruptError: the container is damaged; names file and offset.
        ImportError: ExecuTorch's runtime can't be loaded.
    """
    container = _core.FatContainerFile(os.fspath(path))
    shared = _weights_beside(path) if weights is None else os.fspath(weights)
    preferred = [name for name in prefer if name in container]
    rejected: dict[str, str] = {}
    for name in dict.fromkeys([*preferred, *container]):
        try:
            return FatProgram(name, rejected, container[name], shared)
        except (Error, RuntimeError) as error:
            rejected[name] = str(error)
    reasons = "".join(f"\n  {name}: {reason}" for name, reason in rejected.items()) or " it has none"
    raise UnsupportedError(f"{os.fspath(path)}: no payload can be run here:{reasons}")


def _weights_beside(path: str | os.PathLike[str]) -> str | None:
    beside = Path(path).with_suffix(".ptd")
    return os.fspath(beside) if beside.exists() else None
