# SPDX-License-Identifier: BSD-3-Clause
"""Bundles and fat containers on the ExecuTorch runtime that is installed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from etstream import _core, verify
from etstream._arguments import several
from etstream._errors import Error, ExecutionError, NoSuchNameError, UnsupportedError
from etstream._types import SourceLike
from etstream._values import torch_tensor
from etstream.executorch._internals import needed
from etstream.executorch._refusals import Attempt, refusal
from etstream.executorch._weights import Weights, WeightsOfProgram

_SHOWN = 20
"""How many failed test cases a repr has at most."""


@dataclass(frozen=True)
class CaseResult:
    """How a test case went, which could be run. True if every output is as expected."""

    method: str
    case: int
    outputs: tuple[_core.Comparison, ...]
    """By the output's index; none where the case expects none, as it is for profiling only."""

    def __bool__(self) -> bool:
        return all(self.outputs)

    def __str__(self) -> str:
        if not self.outputs:
            return f"{self.method}, case {self.case}: ran, and expects no outputs"
        lines = [f"{self.method}, case {self.case}: {'passed' if self else 'FAILED'}"]
        lines += [f"  output {index}: {output}" for index, output in enumerate(self.outputs)]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class BundleResult:
    """How all test cases went, in the order of the file. True if each passed. Its repr has those that failed."""

    cases: tuple[CaseResult, ...]

    def __bool__(self) -> bool:
        return all(self.cases)

    def __str__(self) -> str:
        passed = sum(map(bool, self.cases))
        return "\n".join([*map(str, self.cases), f"{passed} of {len(self.cases)} test cases passed"])

    def __repr__(self) -> str:
        failed = [case for case in self.cases if not case]
        said = [f"{len(failed)} of {len(self.cases)} test cases failed", *map(str, failed[:_SHOWN])]
        if len(failed) > _SHOWN:
            said.append(f"and {len(failed) - _SHOWN} more")
        return "<etstream.executorch.BundleResult: " + "\n".join(said) + ">"


class Bundle(_core.BundledProgramFile):
    """An open bundle that runs; see open_bundle(). A context manager. One thread at a time may use it.

    The program, and the weights, are mapped where they lie in their files, which are not to change while the
    bundle is open: they take no memory but what the runtime makes of them (a delegate may copy weights), and
    nothing is copied on the disk, but weights in several files, see open_bundle(). They are copied to memory where
    they can't be mapped: in a source that is no regular file, or at an offset that is no multiple of 16 bytes.
    """

    def __init__(self, source: SourceLike, weights: WeightsOfProgram | None = None) -> None:
        file = _core.Source(source)
        super().__init__(file)
        self._name = file.name
        self._weights = None if weights is None else Weights(weights)
        self._loaded: tuple[Any, Any] | None = None
        self._closed = False

    def __repr__(self) -> str:
        count = len(self.methods)
        return f"<etstream.executorch.Bundle, {self.format}, of {count} method{'s' * (count != 1)}: {self._name}>"

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file. May be called again."""
        self._loaded = None
        self._closed = True

    @property
    def methods(self) -> dict[str, int]:
        """The methods that have test cases, in the order of the file, and how many each has."""
        return {method: count for method, (_, count) in self._suites_by_method().items()}

    def verify(
        self,
        method: str = "forward",
        case: int = 0,
        *,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        integer: int = 0,
        nan_equal: bool = True,
    ) -> CaseResult:
        """Runs a test case, and compares what comes out with what it expects.

        Each runs in a program that is loaded again, so that nothing is left over from another. It is checked
        before that the program is sound and that the test case fits it, as ExecuTorch may crash where not.

        Args:
            method: where a bundle has several suites for it, the first counts, as for ExecuTorch.
            case: its index in the suite.
            rtol, atol: floating-point elements and doubles pass if |actual - expected| <= atol + rtol *
                |expected|. The defaults are ExecuTorch's.
            integer: by how much integers may differ; 1 is what rounding takes in quantized outputs.
            nan_equal: whether NaN is as expected where NaN is expected.

        Raises:
            NoSuchNameError: the bundle has no such method or test case.
            InvalidArgumentError: the test case does not fit the program, which names the input or output; or a
                tolerance is negative or NaN.
            ExecutionError: ExecuTorch refuses the program or fails to run the method; says what it says (its log on
                stderr says more).
            CorruptError: the program is damaged.
            ImportError: ExecuTorch's runtime can't be loaded, as one that was built for another torch.
        """
        suites = self._suites_by_method()
        if method not in suites:
            known = ", ".join(map(repr, suites)) or "none"
            found = f"no test cases for method {method!r}; methods that have some: {known}"
            raise NoSuchNameError.about(self._name, found)
        suite, count = suites[method]
        if not 0 <= case < count:
            raise NoSuchNameError.about(self._name, f"method {method!r} has {count} test cases, and no {case}")
        compare = partial(_core.compare, rtol=rtol, atol=atol, integer=integer, nan_equal=nan_equal)
        return self._verify(suite, method, case, compare)

    def verify_all(
        self, *, rtol: float = 1e-5, atol: float = 1e-8, integer: int = 0, nan_equal: bool = True
    ) -> BundleResult:
        """Runs each test case as verify() does, and raises as that does at the first that can't be run."""
        compare = partial(_core.compare, rtol=rtol, atol=atol, integer=integer, nan_equal=nan_equal)
        return BundleResult(
            tuple(
                self._verify(suite, method, case, compare)
                for suite, (method, count) in enumerate(_core.suite_sizes(self))
                for case in range(count)
            )
        )

    def _verify(
        self, suite: int, method: str, case: int, compare: Callable[[Any, Any], _core.Comparison]
    ) -> CaseResult:
        test_case = _core.fitted_test_case(self, suite, case)
        actual = self._run(method, case, [_to_torch(value) for value in test_case.inputs])
        return CaseResult(method, case, tuple(map(compare, test_case.expected_outputs, actual)))

    def _run(self, method: str, case: int, inputs: list[Any]) -> list[Any]:
        load = _runtime_function("Bundle.verify()", "_load_for_executorch_from_buffer")
        program, weights = self._load()
        module = None
        try:
            module = load(program.bytes, None if weights is None else weights.bytes)
            outputs: list[Any] = module.run_method(method, inputs)
            return outputs
        except RuntimeError as error:
            where = f"method {method!r}, test case {case}"
            given = () if self._weights is None else self._weights.sources
            said = refusal(error, Attempt(self.program, method, given))
            raise ExecutionError.about(self._name, f"{where}: {said}") from error
        finally:
            del module  # it refers to the bytes, and is to be gone before them

    def _load(self) -> tuple[Any, Any]:
        if self._closed:
            raise ValueError(f"{self._name}: the bundle is closed")
        if self._loaded is None:
            weights = None
            if self._weights is not None:
                with self._weights.in_one() as source:
                    weights = loadable_bytes(source)
            self._loaded = loadable_bytes(self.program), weights
        return self._loaded

    def _suites_by_method(self) -> dict[str, tuple[int, int]]:
        """The index of each method's first suite, and how many test cases that has."""
        suites: dict[str, tuple[int, int]] = {}
        for suite, (method, count) in enumerate(_core.suite_sizes(self)):
            suites.setdefault(method, (suite, count))
        return suites


def open_bundle(source: SourceLike, *, weights: WeightsOfProgram | None = None) -> Bundle:
    """Opens a bundle (.bpte, of either format), to run its test cases on the installed ExecuTorch runtime.

    What runs is what this process has of ExecuTorch: import first what registers more operators.

    Args:
        source: all of the file: a path, a buffer, or another source.
        weights: a source: the .ptd file that the program takes weights from, if it does. Or the path of the first of
            several shards, which stands for all, or a list of paths. ExecuTorch's Python functions take one file:
            several are joined in a temporary one when the first case runs, which takes as much room in TMPDIR until
            the bundle is closed.

    Raises:
        CorruptError: the file is damaged; names file and offset.
        UnsupportedError: it is no bundle; says what it is.
        InvalidArgumentError: a shard without the others; files of one key that differ.
    """
    return Bundle(source, weights)


class FatProgram:
    """A payload of a fat container, loaded; see load_fat(). A context manager. One thread at a time may use it."""

    name: str
    """Of the payload."""
    rejected: dict[str, str]
    """Why those that come before it can't be run here, by their names."""

    def __init__(self, name: str, rejected: dict[str, str], source: _core.Source, weights: Weights | None) -> None:
        """Raises ExecutionError where ExecuTorch can't run the program."""
        self.name = name
        self.rejected = rejected
        self._source = source
        self._given = () if weights is None else weights.sources
        self._program: Any = None
        self._methods: dict[str, Any] = {}
        load = _runtime_function("load_fat()", "_load_program_from_buffer")
        findings = verify(source, *self._given)
        if not findings:
            raise UnsupportedError(findings.errors[0])
        self._bytes: Any = loadable_bytes(source)
        with nullcontext() if weights is None else weights.in_one() as one:
            # As bytes: the runtime takes no str that is not UTF-8.
            path = None if one is None else os.fsencode(one.name)
            try:
                self._program = load(self._bytes.bytes, data_path=path)
            except RuntimeError as error:
                raise self._refused(error, "forward") from error
            names = map(self._program.get_method_name, range(self._program.num_methods()))
            self._methods = {name: self._load_method(name) for name in names}

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
            raise self._refused(error, method, inputs) from error
        return outputs

    def _load_method(self, name: str) -> Any:
        try:
            return self._program.load_method(name)
        except RuntimeError as error:
            raise self._refused(error, name) from error

    def _refused(self, error: RuntimeError, method: str, inputs: Sequence[Any] | None = None) -> ExecutionError:
        said = refusal(error, Attempt(self._source, method, self._given, inputs))
        return ExecutionError(f"payload {self.name!r}: method {method!r}: {said}")

    def _loaded(self) -> dict[str, Any]:
        if self._program is None:
            raise ValueError(f"payload {self.name!r} is closed")
        return self._methods


def load_fat(
    path: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    prefer: Iterable[str] = (),
) -> FatProgram:
    """Loads the first payload of a fat container that the installed ExecuTorch runtime can run.

    A payload can be run if it is a sound program, and each of its methods loads: with its operators, its delegates'
    backends, and its weights. It is mapped where it lies in the container if that is at a multiple of 16, as with
    specialize(); otherwise it is copied to memory. What can be run is what this process has of ExecuTorch: import
    first what registers more operators and backends.

    Args:
        path: of the container. Neither it nor the weights are to change while the program is open.
        weights: path of the .ptd file that the payloads share, or several as of open_bundle(); by default the one
            beside the container that has its name with the suffix .ptd, if there is one.
        prefer: names of payloads to try before the others, which follow in the container's order. Names that the
            container lacks are passed over.

    Raises:
        UnsupportedError: no payload can be run; says of each why not.
        CorruptError: the container is damaged; names file and offset.
        ImportError: ExecuTorch's runtime can't be loaded.
    """
    preferences = several("prefer", "names", prefer)
    container = _core.FatContainerFile(os.fspath(path))
    given = _weights_beside(path) if weights is None else weights
    shared = None if given is None else Weights(given)
    preferred = [name for name in preferences if name in container]
    rejected: dict[str, str] = {}
    for name in dict.fromkeys([*preferred, *container]):
        try:
            return FatProgram(name, rejected, container[name], shared)
        except (Error, RuntimeError) as error:
            rejected[name] = str(error)
    reasons = "".join(f"\n  {name}: {reason}" for name, reason in rejected.items()) or " it has none"
    raise UnsupportedError.about(os.fspath(path), f"no payload can be run here:{reasons}")


def _weights_beside(path: str | os.PathLike[str]) -> str | None:
    beside = Path(path).with_suffix(".ptd")
    return os.fspath(beside) if beside.exists() else None


@cache
def _runtime_function(feature: str, name: str) -> Any:
    """What the runtime's Python module has by that name; see needed()."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental
        (function,) = needed(feature, f"executorch.extension.pybindings.portable_lib:{name}")
    return function


def loadable_bytes(source: _core.Source) -> Any:
    """What has all of `source` as `bytes`, which take no memory where they can be mapped."""
    try:
        return _core.FileBytes(source)
    except UnsupportedError:
        return SimpleNamespace(bytes=source.read())


def _to_torch(value: Any) -> Any:
    """An input as ExecuTorch's Python functions take it."""
    # A copy: the runtime may write to its inputs, and what is read is checked to be what it was.
    return torch_tensor(value, bytearray(value.data.read())) if isinstance(value, _core.Tensor) else value
