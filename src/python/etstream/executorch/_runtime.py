# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs, bundles and fat containers on the installed ExecuTorch runtime."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etstream import _core, ptd, verify
from etstream._arguments import asked, is_path, several
from etstream._arrays import Tolerance, compare, torch_tensor
from etstream._errors import Error, ExecutionError, NoSuchNameError, UnsupportedError
from etstream._programs import all_shards, files_of
from etstream._types import SourceLike
from etstream._writing import Unpack, keywords_of
from etstream.executorch._patches import needed
from etstream.executorch._refusals import Attempt, refusal
from etstream.results import Comparison, Result, Table

if TYPE_CHECKING:
    from typing_extensions import Self

WeightsOfProgram = SourceLike | Sequence[str | os.PathLike[str]]


class Weights:
    """The weights of a program: one source, or the files of whole sets."""

    def __init__(self, given: WeightsOfProgram) -> None:
        listed = [asked(one) for one in files_of([given])]
        self.sources: list[_core.Source] = [_core.Source(one) for one in all_shards(listed, False)]
        self._paths = [one for one in listed if is_path(one)]
        if self._paths and len(self._paths) < len(listed):
            raise TypeError("weights: expected a source, or a list of paths, found a list of both")

    def in_one_file(self) -> _core.LoadableFile:
        """Returns all of them as one .ptd file."""
        if len(self.sources) == 1:
            return _core.LoadableFile(self.sources[0])
        return _core.LoadableFile(ptd(self._paths, opaque=True, dry_run=True).source())


_SHOWN = 20
"""The most failed test cases that a repr shows."""


class CaseResult(Result):
    """The result of a test case that could be run. True if every output is as expected."""

    method: str
    case: int
    outputs: Table[Comparison]
    """The comparisons, by the output's index; none if the case expects no outputs and is for profiling only."""

    def __bool__(self) -> bool:
        return all(self.outputs)

    def __str__(self) -> str:
        if not self.outputs:
            return f"{self.method}, case {self.case}: ran, and expects no outputs"
        lines = [f"{self.method}, case {self.case}: {'passed' if self else 'FAILED'}"]
        lines += [f"  output {index}: {output}" for index, output in enumerate(self.outputs)]
        return "\n".join(lines)


class BundleResult(Result):
    """The results of all test cases, in the order of the file. True if each passed. Its repr shows the failed ones."""

    cases: Table[CaseResult]

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

    ExecuTorch maps the program and the weights from files, which must not change while the bundle is open, and locks
    their pages in memory as far as the process may (`ulimit -l`). As it takes whole files by their paths, the program
    is copied from the bundle to a temporary file without a name, and so are weights that are not all of one file. They
    take their size in TMPDIR, or /var/tmp, until the bundle is closed.
    """

    def __init__(self, source: SourceLike, weights: WeightsOfProgram | None = None) -> None:
        file = _core.Source(source)
        super().__init__(file)
        self._name = file.name
        self._weights = None if weights is None else Weights(weights)
        self._loaded: tuple[_core.LoadableFile, _core.LoadableFile | None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        count = len(self.methods)
        return f"<etstream.executorch.Bundle, {self.format}, of {count} method{'s' * (count != 1)}: {self._name}>"

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the file. May be called again."""
        self._loaded = None
        self._closed = True

    @property
    def methods(self) -> dict[str, int]:
        """The methods that have test cases, in the order of the file, and the number of test cases of each."""
        return {method: count for method, (_, count) in self._suites_by_method().items()}

    @keywords_of(Tolerance)
    def verify(self, method: str = "forward", case: int = 0, **tolerance: Unpack[Tolerance]) -> CaseResult:
        """Runs a test case, and compares its outputs with those that it expects.

        The program is loaded again for each test case, so that nothing is left over from another one. Before the run,
        the program is checked to be sound and the test case to fit it, as ExecuTorch may crash otherwise.

        Args:
            method: the method's name. If a bundle has several suites for it, the first counts, as for ExecuTorch.
            case: the test case's index in the suite.
            tolerance: those of Tolerance.

        Raises:
            NoSuchNameError: the bundle has no such method or test case.
            InvalidArgumentError: the test case does not fit the program (the message names the input or output), or a
                tolerance is negative or NaN.
            ExecutionError: ExecuTorch refuses the program or fails to run the method; the message has its words (its
                log on stderr says more).
            CorruptError: the program is damaged.
            ImportError: ExecuTorch's runtime can't be loaded, for example because it was built for another torch.
        """
        suites = self._suites_by_method()
        if method not in suites:
            known = ", ".join(map(repr, suites)) or "none"
            found = f"no test cases for method {method!r}; methods that have some: {known}"
            raise NoSuchNameError.about(self._name, found)
        suite, count = suites[method]
        if not 0 <= case < count:
            raise NoSuchNameError.about(self._name, f"method {method!r} has {count} test cases, and no {case}")
        return self._verify(suite, method, case, tolerance)

    @keywords_of(Tolerance)
    def verify_all(self, **tolerance: Unpack[Tolerance]) -> BundleResult:
        """Runs each test case as verify() does, and raises what verify() raises at the first one that can't be run.

        See Tolerance."""
        return BundleResult(
            cases=Table(
                self._verify(suite, method, case, tolerance)
                for suite, (method, count) in enumerate(_core.suite_sizes(self))
                for case in range(count)
            )
        )

    def _verify(self, suite: int, method: str, case: int, tolerance: Tolerance) -> CaseResult:
        test_case = _core.fitted_test_case(self, suite, case)
        actual = self._run(method, case, [_to_torch(value) for value in test_case.inputs])
        outputs = map(partial(compare, **tolerance), test_case.expected_outputs, actual)
        return CaseResult(method=method, case=case, outputs=Table(outputs))

    def _run(self, method: str, case: int, inputs: list[Any]) -> list[Any]:
        load = _runtime_function("Bundle.verify()", "_load_for_executorch")
        program, weights = self._load()
        try:
            module = load(program.path, None if weights is None else weights.path)
            outputs: list[Any] = module.run_method(method, inputs)
            return outputs
        except RuntimeError as error:
            where = f"method {method!r}, test case {case}"
            given = () if self._weights is None else self._weights.sources
            said = refusal(error, Attempt(self.program, method, given))
            raise ExecutionError.about(self._name, f"{where}: {said}") from error

    def _load(self) -> tuple[_core.LoadableFile, _core.LoadableFile | None]:
        if self._closed:
            raise ValueError(f"{self._name}: the bundle is closed")
        if self._loaded is None:
            weights = None if self._weights is None else self._weights.in_one_file()
            self._loaded = _core.LoadableFile(self.program), weights
        return self._loaded

    def _suites_by_method(self) -> dict[str, tuple[int, int]]:
        """Returns the index of each method's first suite, and the number of test cases in that suite."""
        suites: dict[str, tuple[int, int]] = {}
        for suite, (method, count) in enumerate(_core.suite_sizes(self)):
            suites.setdefault(method, (suite, count))
        return suites


def open_bundle(source: SourceLike, *, weights: WeightsOfProgram | None = None) -> Bundle:
    """Opens a bundle (.bpte, of either format), to run its test cases on the installed ExecuTorch runtime.

    The bundle runs with the operators that this process has: first import the modules that register more.

    Args:
        source: all of the file: a path, a buffer, or another source.
        weights: a source: the .ptd file that the program takes weights from, if any; or the path of the first of
            several shards, which stands for all; or a list of paths. Several files are joined, see Bundle.

    Raises:
        CorruptError: the file is damaged; the message names file and offset.
        UnsupportedError: the file is no bundle; the message says what it is.
        InvalidArgumentError: a shard is given without the others, or files differ in the data of one key.
    """
    return Bundle(source, weights)


class LoadedProgram:
    """A program on the installed ExecuTorch runtime; see load(). A context manager. One thread at a time may use it."""

    def __init__(self, source: _core.Source, weights: Weights | None, title: str) -> None:
        """`title` stands for the program in messages. Raises ExecutionError if ExecuTorch can't run the program, and
        UnsupportedError for one that is not sound."""
        self._title = title
        self._given = [] if weights is None else weights.sources
        self._program: Any = None
        self._methods: dict[str, Any] = {}
        load = _runtime_function(type(self).__name__, "_load_program")
        file = _core.LoadableFile(source)
        data = None if weights is None else weights.in_one_file()
        self._source: Any = file.source
        if data is not None and len(self._given) == 1:
            self._given = [data.source]
        findings = verify(file.source, *self._given)
        if not findings:
            raise UnsupportedError(findings.errors[0])
        try:
            self._program = load(file.path, data_path=None if data is None else data.path)
        except RuntimeError as error:
            raise self._refused(error, "forward") from error
        names = map(self._program.get_method_name, range(self._program.num_methods()))
        self._methods = {name: self._load_method(name) for name in names}

    def __repr__(self) -> str:
        return f"<etstream.executorch.{type(self).__name__}: {self._title}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Releases the program and its file. May be called again."""
        self._methods = {}
        self._program = None
        self._source = None
        self._given = []

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods, in the order of the program."""
        return tuple(self._loaded())

    def run(self, inputs: Sequence[Any] = (), method: str = "forward") -> list[Any]:
        """Runs a method, and returns its outputs; tensors are torch's.

        Raises:
            NoSuchNameError: the program has no such method.
            ExecutionError: ExecuTorch fails to run the method; the message has its words (its log on stderr says more).
        """
        methods = self._loaded()
        if method not in methods:
            known = ", ".join(map(repr, methods))
            raise NoSuchNameError(f"{self._title} has no method {method!r}; methods: {known}")
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
        return ExecutionError(f"{self._title}: method {method!r}: {said}")

    def _loaded(self) -> dict[str, Any]:
        if self._program is None:
            raise ValueError(f"{self._title} is closed")
        return self._methods


def load(program: SourceLike, weights: WeightsOfProgram | None = None) -> LoadedProgram:
    """Loads a program, with all of its methods, to run it on the installed ExecuTorch runtime.

    The program, or the bundle that has it, may be packed, and so may the weights: nothing has to be unpacked first.
    ExecuTorch maps whole files by their paths, and locks their pages in memory as far as the process may (`ulimit -l`).
    What is not all of a file (a program in a bundle, a packed or an open file, bytes, several files of weights) is
    written to a temporary file without a name, which takes its unpacked size in TMPDIR, or /var/tmp, until the program
    is closed. The program runs with the operators and backends that this process has: first import the modules that
    register more.

    Args:
        program: a source: a program (.pte) or a bundle (.bpte, of either format). A file must not change while the
            program is open.
        weights: a source: the .ptd file that the program takes weights from, if any; or the path of the first of
            several shards, which stands for all; or a list of paths.

    Raises:
        CorruptError: a file is damaged; the message names file and offset.
        UnsupportedError: the program is not sound, or is another kind of file; the message says which.
        ExecutionError: ExecuTorch refuses the program; the message has its words (its log on stderr says more).
        ImportError: ExecuTorch's runtime can't be loaded.
    """
    file = _core.Source(program)
    try:
        source = _core.BundledProgramFile(file).program
    except UnsupportedError:
        source = _core.ProgramFile(file).file
    return LoadedProgram(source, None if weights is None else Weights(weights), file.name)


class FatProgram(LoadedProgram):
    """A loaded payload of a fat container; see load_fat(). A context manager. One thread at a time may use it."""

    name: str
    """The payload's name."""
    rejected: dict[str, str]
    """The reasons why the payloads before it can't be run here, by their names."""

    def __init__(self, name: str, rejected: dict[str, str], source: _core.Source, weights: Weights | None) -> None:
        """Raises what LoadedProgram() does."""
        self.name = name
        self.rejected = rejected
        super().__init__(source, weights, f"payload {name!r}")


def load_fat(
    path: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    prefer: Iterable[str] = (),
) -> FatProgram:
    """Loads the first payload of a fat container that the installed ExecuTorch runtime can run.

    A payload can be run if it is a sound program, and each of its methods loads with its operators, its delegates'
    backends and its weights. Each is copied from the container to a temporary file, see load(). Payloads run with the
    operators and backends that this process has: first import the modules that register more.

    Args:
        path: the container's path. Neither the container nor the weights may change while the program is open.
        weights: the path of the .ptd file that the payloads share, or of the first of several shards, or a list of
            paths; by default the file beside the container that has its name with the suffix .ptd, if there is one.
            They may be packed, see load().
        prefer: names of payloads to try before the others, which follow in the container's order. Names that the
            container lacks are skipped.

    Raises:
        UnsupportedError: no payload can be run; the message says why for each.
        CorruptError: the container is damaged; the message names file and offset.
        ImportError: ExecuTorch's runtime can't be loaded.
    """
    preferences = several("prefer", "names", prefer)
    path = asked(path)
    container = _core.FatContainerFile(path)
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
    raise UnsupportedError.about(path, f"no payload can be run here:{reasons}")


def _weights_beside(path: str) -> str | None:
    beside = Path(path).with_suffix(".ptd")
    return os.fspath(beside) if beside.exists() else None


@cache
def _runtime_function(feature: str, name: str) -> Any:
    """Returns the function of that name in the runtime's Python module; see needed()."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning that the module is experimental
        (function,) = needed(feature, f"executorch.extension.pybindings.portable_lib:{name}")
    return function


def _to_torch(value: Any) -> Any:
    """Returns an input as ExecuTorch's Python functions take it."""
    # The runtime may write to its inputs, so this is a copy. Reading checks that the data is what it was.
    return torch_tensor(value, bytearray(value.data.read())) if isinstance(value, _core.Tensor) else value
